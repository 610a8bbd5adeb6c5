# SPDX-License-Identifier: MIT
"""The robot as a URDF: the file that the simulated world loads, and a text for every arm."""
