"""Camera calibration of the robot cell: collect a dataset, solve it, and say PASS or FAIL.

The solvers know no ROS: they read a folder of images and robot poses and return numbers. Only files
named `*_node.py` import rclpy, and only `simulation/` imports the simulated world.
"""

from __future__ import annotations

__version__ = "0.1.0"
