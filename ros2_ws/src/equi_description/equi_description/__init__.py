# SPDX-License-Identifier: MIT
"""Nodes that show the robot: its description, its transforms and its next step."""
