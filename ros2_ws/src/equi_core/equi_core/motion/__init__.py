# SPDX-License-Identifier: MIT
"""From an action to a motion: kinematics, safety filter, jerk-limited trajectory."""
