# SPDX-License-Identifier: MIT
"""The process of a node from its first line on: it can always be stopped, and ends with its launch.

Importing rclpy, numba or torch takes seconds, in which Python handles no signal (or none at all: a
background job of a shell ignores SIGINT). So the executables of the nodes import nothing heavy
before this module has made the process stoppable:

    depth_fusion_node = executable("equi_perception.depth_fusion_node")

A launch that dies without a word (SIGKILL, or SIGTERM to ROS's own launch) leaves its processes
running, a driver among them. Our launch files therefore state the process id of the launch in the
environment, and a process that finds it there ends like after Ctrl-C when that process is gone.
A node that somebody starts by hand, under nohup for example, has no such variable and stays.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib
import logging
import math
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator

LAUNCH_PID = "EQUI_LAUNCH_PID"
"""Environment variable: process id of the launch with which the process shall end."""
END_TIMEOUT_S = 1.8
"""A process that was asked to end does so within this time, finished or not [s]."""
_QUIET_END_S = 1.7
"""Before that, with nothing left to close but ROS, it ends without a word [s]."""
_POLL_PERIOD_S = 0.2
_asked_s = math.inf
"""When the process was asked to end [s, monotonic]."""


def executable(module: str) -> Callable[[], int]:
    """An entry point: the function `main` of a module that is imported only when called."""

    def main() -> int:
        make_stoppable()
        code = int(importlib.import_module(module).main())
        leave(code)
        return code

    return main


def leave(code: int) -> None:
    """End the process: everything of ours is closed, and to take Python apart can take seconds."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def make_stoppable() -> None:
    """From now on SIGINT ends the process at once, whatever it does; so does its launch's end.

    For the time before `equi_ros.shutdown_signal` listens; nothing has to be cleaned up yet.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    launch = os.environ.get(LAUNCH_PID, "")
    if launch.isdecimal():
        end_with_process(int(launch))


def end_with_process(pid: int) -> None:
    """Watch another process from a thread; when it is gone, this one is asked to end."""
    threading.Thread(target=_watch, args=(pid,), name="launch_watch", daemon=True).start()


def end_in_time(timeout_s: float = END_TIMEOUT_S) -> None:
    """The process was asked to end: after this time it ends, with a traceback of what hung.

    By a thread in C that needs no Python: it works whatever the process is busy with. A driver's
    servo process stops the arm by itself when the driver is gone.
    """
    global _asked_s
    _asked_s = time.monotonic()
    faulthandler.dump_traceback_later(timeout_s, exit=True)


@contextlib.contextmanager
def leaving_in_time(code: int) -> Iterator[None]:
    """A block in which only ROS is left to be closed: when the time is up, the process just ends.

    On a busy machine DDS waits for others that end at the same moment, inside a call that holds
    Python's lock. That is no failure of this process, and nothing to be told: its code is `code`.
    """
    left_s = min(_asked_s - time.monotonic(), 0.0) + _QUIET_END_S
    timer = _exit_after(max(left_s, 0.05), code)
    try:
        yield
    finally:
        if timer is not None:
            ctypes.CDLL(None).timer_delete(timer)


class _SigEvent(ctypes.Structure):
    """struct sigevent of Linux, for SIGEV_THREAD."""

    _fields_ = (
        ("value", ctypes.c_longlong),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("function", ctypes.c_void_p),
        ("attribute", ctypes.c_void_p),
        ("padding", ctypes.c_byte * 32),
    )


def _exit_after(timeout_s: float, code: int) -> ctypes.c_void_p | None:
    """Start a timer of the C library that calls _exit(code); None where there is none."""
    clock_monotonic, sigev_thread = 1, 2
    try:
        library = ctypes.CDLL(None, use_errno=True)
        function = ctypes.cast(library._exit, ctypes.c_void_p).value
        event = _SigEvent(value=code, notify=sigev_thread, function=function)
        timer = ctypes.c_void_p()
        if library.timer_create(clock_monotonic, ctypes.byref(event), ctypes.byref(timer)):
            return None
        seconds = int(timeout_s)
        # struct itimerspec: no repetition, then the first time.
        times = (ctypes.c_long * 4)(0, 0, seconds, int((timeout_s - seconds) * 1e9))
        started = library.timer_settime(timer, 0, ctypes.byref(times), None) == 0
    except (OSError, AttributeError):  # not Linux
        return None
    return timer if started else None


def _watch(pid: int) -> None:
    _wait_for_end(pid)
    # Nobody reads the output any more; writing there must not get in the way of stopping.
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            os.dup2(null, stream.fileno())
    os.kill(os.getpid(), signal.SIGINT)


def _wait_for_end(pid: int) -> None:
    """Return when a process, which need not be a child, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # an old kernel
        while _exists(pid):
            time.sleep(_POLL_PERIOD_S)
        return
    try:
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        waiting.poll()
    finally:
        os.close(descriptor)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
