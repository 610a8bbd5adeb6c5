# SPDX-License-Identifier: MIT
"""The error of a launch file that cannot be loaded."""

from __future__ import annotations


class InvalidLaunchFileError(Exception):
    """A launch file is missing, has a syntax error, or fails while it is loaded."""
