# SPDX-License-Identifier: MIT
"""The controller's TCP servers: RTDE, script port, dashboard, gripper."""
