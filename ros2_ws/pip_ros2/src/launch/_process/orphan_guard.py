# SPDX-License-Identifier: MIT
"""A small watchdog process that stops the children of a launch that was itself killed.

The launch tells it by a pipe which process groups exist. When the pipe closes while groups are
left, the launch died without stopping them (SIGKILL, out of memory): the watchdog then stops them
as the launch would have done, SIGINT, SIGTERM, SIGKILL. It runs this same file as a script.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

ESCALATION = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
STEP_S = 5.0
POLL_S = 0.05


class OrphanGuard:
    """The launch's end of the pipe; the watchdog starts with the first process group."""

    def __init__(self) -> None:
        self.__process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the watchdog, None while it has nothing to watch."""
        return None if self.__process is None else self.__process.pid

    def watch(self, group: int) -> None:
        """Put a process group under guard."""
        if self.__process is None:
            self.__process = subprocess.Popen(
                [sys.executable, "-I", "-S", os.path.abspath(__file__)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        self.__tell(f"+{group}\n")

    def release(self, group: int) -> None:
        """Forget a process group that is gone."""
        self.__tell(f"-{group}\n")

    def close(self) -> None:
        """Dismiss the watchdog."""
        process, self.__process = self.__process, None
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.write(b"q\n")
                process.stdin.close()
        process.wait()

    def __tell(self, line: str) -> None:
        if self.__process is not None and self.__process.stdin is not None:
            # A watchdog that somebody killed must not bring the launch down.
            with contextlib.suppress(OSError):
                self.__process.stdin.write(line.encode())
                self.__process.stdin.flush()


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def _stop(groups: set[int]) -> None:
    for step in ESCALATION:
        for group in groups:
            with contextlib.suppress(OSError):
                os.killpg(group, step)
        deadline = time.monotonic() + STEP_S
        while time.monotonic() < deadline:
            groups = {group for group in groups if _alive(group)}
            if not groups:
                return
            time.sleep(POLL_S)


def _watch() -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(ignored, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin.buffer:
        order, group = line[:1], line[1:].strip()
        if order == b"q":
            return
        if order == b"+":
            groups.add(int(group))
        elif order == b"-":
            groups.discard(int(group))
    _stop(groups)


if __name__ == "__main__":
    _watch()
