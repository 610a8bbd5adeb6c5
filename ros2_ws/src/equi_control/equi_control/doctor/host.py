# SPDX-License-Identifier: MIT
"""The computer itself: real-time priority for the servo process, and room for clouds."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

from equi_control.doctor.finding import Finding, ok, skipped, warn
from equi_core.motion.realtime import Priority, raise_priority

_FIFO_PRIORITY = 5
_LEAST_FREE_BYTES = 256_000_000


def check_priority() -> Finding:
    """Whether a thread gets real-time priority here, tried by one."""
    granted: list[Priority] = []
    thread = threading.Thread(target=lambda: granted.append(raise_priority(_FIFO_PRIORITY)))
    thread.start()
    thread.join()
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    if granted != [Priority.REAL_TIME]:
        return warn(
            "real-time priority",
            f"not granted ({load})",
            "write '@realtime - rtprio 99' to /etc/security/limits.d/realtime.conf, add yourself "
            "to the group realtime, log in again",
        )
    return ok("real-time priority", f"granted ({load})")


def check_shared_memory(folder: Path = Path("/dev/shm")) -> Finding:
    """Whether there is room for clouds, or dead processes hold it."""
    try:
        from equi_ros.stale_shared_memory import stale_segments  # installed with ROS only
    except ImportError:
        return skipped("shared memory", "needs the ROS packages of this project")
    if not folder.is_dir():
        return skipped("shared memory", f"there is no {folder}")
    stale = len(stale_segments(folder))
    free = shutil.disk_usage(folder).free
    found = f"{free / 1e6:.0f} MB free, {stale} left by dead processes"
    if stale or free < _LEAST_FREE_BYTES:
        return warn("shared memory", found, "python -m equi_ros.stale_shared_memory --remove")
    return ok("shared memory", found)
