# SPDX-License-Identifier: MIT
"""The robot's mechanics: links, kinematics, contact, collisions, force estimate."""
