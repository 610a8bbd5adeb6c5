# SPDX-License-Identifier: MIT
"""Priority for the few processes that must keep a period: real-time if allowed, else as is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum


class Priority(str, Enum):
    """What the operating system granted."""

    REAL_TIME = "real-time"
    RAISED = "raised"
    NORMAL = "normal"


@contextmanager
def ordinary_priority() -> Iterator[None]:
    """Give up the real-time priority of this thread for a while.

    For calls that wait by spinning: at real-time priority they would keep out the very thread that
    they wait for.
    """
    if sys.platform != "linux" or os.sched_getscheduler(0) == os.SCHED_OTHER:
        yield
        return
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)


def raise_priority(fifo_priority: int = 5) -> Priority:
    """Ask for first-in-first-out scheduling of this process, or at least a better nice value.

    Never fails: without permission (see `ulimit -r`, or the `realtime` group on Ubuntu) the process
    stays as it is. Threads started afterwards inherit the priority.
    """
    if sys.platform == "linux":
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(fifo_priority))
            return Priority.REAL_TIME
        except OSError:
            pass
    try:
        os.nice(-10)
    except OSError:
        return Priority.NORMAL
    return Priority.RAISED
