# SPDX-License-Identifier: MIT
"""Recurrent SAC for any gymnasium environment: vectors or images, plain or equivariant."""
