# SPDX-License-Identifier: MIT
"""The simulated cell: physics arm, cameras, scene and expert in place of the real ones.

The deployed nodes reach it only through the interfaces of the real cell: TCP ports of the UR
controller and of the gripper (`ur_emulator`), and ROS topics of the cameras.
"""
