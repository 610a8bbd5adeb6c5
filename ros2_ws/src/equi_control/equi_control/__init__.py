# SPDX-License-Identifier: MIT
"""Drives the arm and the gripper: streams checked motion, watches everything, fails safe.

`rtde_link` is the only file that imports ur_rtde; `rtde_driver_node` is the only file that imports
ROS. Everything between them is plain Python and runs against the emulator or a robot alike.
"""
