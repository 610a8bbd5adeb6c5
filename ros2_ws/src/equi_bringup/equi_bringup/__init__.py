# SPDX-License-Identifier: MIT
"""Brings the system up: launch files, cells and view settings, and what the launch files share."""
