# SPDX-License-Identifier: MIT
"""The symmetry auditor: how symmetric a network is, and how symmetric a task."""
