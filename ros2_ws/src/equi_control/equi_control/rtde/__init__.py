# SPDX-License-Identifier: MIT
"""The connection to the UR controller; the one place that imports ur_rtde."""
