# SPDX-License-Identifier: MIT
"""The 2F-85 gripper over its TCP port."""
