"""Moved to equi_core.ur5_kinematics, which the robot side needs too."""

from equi_core.ur5_kinematics import *  # noqa: F403
