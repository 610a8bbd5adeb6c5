# SPDX-License-Identifier: MIT
"""Two depth cameras and the robot's state in, one observation of the policy out."""
