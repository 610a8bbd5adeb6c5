# SPDX-License-Identifier: MIT
"""What a launch must give back when it ends: process groups, temporary files, failure records."""

from __future__ import annotations

import collections
import contextlib
import os
from dataclasses import dataclass, field

from ._process.child_process import ChildProcess
from ._process.orphan_guard import OrphanGuard


@dataclass(frozen=True)
class ProcessFailure:
    """A process that could not be started, or died without being asked to."""

    name: str
    returncode: int | None
    reason: str


@dataclass
class LaunchResources:
    """Everything that outlives single actions; released by the launch service."""

    failures: list[ProcessFailure] = field(default_factory=list)
    running: set[ChildProcess] = field(default_factory=set)
    guard: OrphanGuard = field(default_factory=OrphanGuard)
    node_names: collections.Counter[str] = field(default_factory=collections.Counter)
    _temporary_files: list[str] = field(default_factory=list)

    def add_temporary_file(self, path: str) -> None:
        """Delete this file when the launch has ended."""
        self._temporary_files.append(path)

    def adopt(self, child: ChildProcess) -> None:
        """Answer for this process group until `release`."""
        self.running.add(child)
        self.guard.watch(child.pid)

    def release(self, child: ChildProcess) -> None:
        """Forget a process group that is gone."""
        self.running.discard(child)
        self.guard.release(child.pid)

    def close(self) -> None:
        """Kill what is left, dismiss the guard, delete temporary files."""
        for child in list(self.running):
            child.kill_now()
            self.release(child)
        self.guard.close()
        for path in self._temporary_files:
            with contextlib.suppress(OSError):
                os.unlink(path)
        self._temporary_files.clear()
