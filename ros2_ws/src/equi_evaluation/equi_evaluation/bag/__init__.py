# SPDX-License-Identifier: MIT
"""Records of episodes as rosbag2 bags: written without rosbag2, and played back without it."""
