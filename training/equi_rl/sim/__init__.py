# SPDX-License-Identifier: MIT
"""The simulated cell: UR5 and 2F-85, objects, physics, ray-cast depth and cameras."""
