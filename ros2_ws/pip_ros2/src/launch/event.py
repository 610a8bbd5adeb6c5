# SPDX-License-Identifier: MIT
"""The base class of events."""

from __future__ import annotations


class Event:
    """Something that happened; event handlers react to it."""

    name = "launch.Event"
