# SPDX-License-Identifier: MIT
"""The events of processes, under ROS's names."""

from __future__ import annotations

from ..._outside_subset import refuse_missing_names
from .running_process_event import ProcessExited, ProcessStarted, RunningProcessEvent
from .targeted_events import ProcessTargetedEvent, ShutdownProcess, SignalProcess

__all__ = [
    "ProcessExited",
    "ProcessStarted",
    "ProcessTargetedEvent",
    "RunningProcessEvent",
    "ShutdownProcess",
    "SignalProcess",
]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    (
        "ProcessIO",
        "ProcessStderr",
        "ProcessStdin",
        "ProcessStdout",
        "matches_executable",
        "matches_name",
        "matches_pid",
    ),
)
