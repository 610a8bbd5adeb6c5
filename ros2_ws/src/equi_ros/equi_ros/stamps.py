# SPDX-License-Identifier: MIT
"""Time stamps of messages as whole nanoseconds, and back."""

from __future__ import annotations

from typing import Any

from builtin_interfaces.msg import Time

_PER_SECOND = 1_000_000_000


def nanoseconds(stamp: Any) -> int:
    """A builtin_interfaces/Time, of ROS or decoded from a record [ns]."""
    return int(stamp.sec) * _PER_SECOND + int(stamp.nanosec)


def time_message(stamp_ns: int) -> Time:
    """The message of a time [ns]."""
    return Time(sec=stamp_ns // _PER_SECOND, nanosec=stamp_ns % _PER_SECOND)
