# SPDX-License-Identifier: MIT
"""The controller itself: cycle, program, motions, registers, safety system."""
