# SPDX-License-Identifier: MIT
"""ROS-free core shared by training and robot.

Nothing in this package imports ROS, PyBullet, torch or any other package of this repository, so
the simulator and the robot can build the same observation and decode the same action from the
same code.
"""
