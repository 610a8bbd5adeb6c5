# SPDX-License-Identifier: MIT
"""The driver: steps, faults, homing, arm and gripper."""
