# SPDX-License-Identifier: MIT
"""The events of the subset, under ROS's names."""

from __future__ import annotations

from .._outside_subset import refuse_missing_names
from . import process
from .matchers import matches_action
from .shutdown import Shutdown
from .timer_event import TimerEvent

__all__ = ["Shutdown", "TimerEvent", "matches_action", "process"]

__getattr__ = refuse_missing_names(
    __name__, __all__, ("ExecutionComplete", "IncludeLaunchDescription", "matchers")
)
