# SPDX-License-Identifier: MIT
"""The commands of `ros2`, one module each; a command has verbs, such as `topic list`."""
