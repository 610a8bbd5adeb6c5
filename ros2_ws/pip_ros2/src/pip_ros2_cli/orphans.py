# SPDX-License-Identifier: MIT
"""Adopt and stop what started processes leave behind, so that a launch leaves no orphan."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
STEP_S = 5.0
POLL_S = 0.02


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (Linux only)."""
    if sys.platform == "linux":
        # Failure is harmless: groups are stopped anyway, only daemonised processes escape.
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def stop_orphans() -> list[int]:
    """Stop all remaining children, SIGTERM first; return the ids of those that were alive."""
    remaining = _living_children()
    for step in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STEP_S
        for pid in _living_children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, step)
        while _living_children() and time.monotonic() < deadline:
            time.sleep(POLL_S)
    return remaining


def _living_children() -> list[int]:
    """Return the ids of our children, after reaping those that ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    children = []
    try:
        entries = os.listdir("/proc")
    except OSError:
        return []
    for entry in entries:
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError):
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as stat:
                    state, parent, *_ = stat.read().rpartition(")")[2].split()
                if int(parent) == os.getpid() and state not in ("Z", "X"):
                    children.append(int(entry))
    return children
