# SPDX-License-Identifier: MIT
"""The error that ends a command with a message for the user."""

from __future__ import annotations


class CommandError(Exception):
    """Something the user can put right; shown without a traceback, exit code 1."""
