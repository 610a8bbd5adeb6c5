# SPDX-License-Identifier: MIT
"""From point clouds and robot state to the image that the policy was trained on."""
