# SPDX-License-Identifier: MIT
"""The `ros2` command for environments in which ROS comes from PyPI.

A subset of ROS's ros2cli with the same commands, options and output. Every command that looks at
the ROS graph makes a short-lived node of its own; there is no daemon.
"""
