# SPDX-License-Identifier: MIT
"""Output of commands: text for the user on stdout, complaints on stderr."""

from __future__ import annotations

import sys


def out(text: str = "") -> None:
    """Write a line to stdout at once, so that pipes see it when it happens."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def err(text: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
