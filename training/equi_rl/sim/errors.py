# SPDX-License-Identifier: MIT
"""What can be wrong with a request to the simulated world; each error says what to do next."""

from __future__ import annotations


class SimError(Exception):
    """Base of the errors raised by the simulated world itself."""


class SceneError(SimError, ValueError):
    """A scene whose objects are malformed or cannot be placed."""
