# SPDX-License-Identifier: MIT
"""Who works in a run folder, known on every machine that shares its disk.

On one machine a lock of the kernel decides (`fcntl.flock`); it ends with its process. Across
machines such locks are not dependable, so the owner also leaves its name in `.owner.json` and
touches it every few seconds. Another machine may take the folder over when that sign of life is
old, which is how the runs of a lost machine go on elsewhere; should the first machine come back, it
finds another name there and stops. Ages are differences of two times given by the disk's own clock.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from equi_rl.data.atomic_file import write_atomically

RENEW_EVERY_S = 5.0
DEAD_AFTER_S = 60.0
"""A machine that has given no sign of life for so long has lost its folders."""


class RunFolderError(ValueError):
    """A folder that holds another run, is in use, or has nothing to continue; says what to do."""


class FolderInUseError(RunFolderError):
    """Another process or machine works in the folder."""


@dataclass(frozen=True)
class Owner:
    """Who wrote `.owner.json`."""

    machine: str
    """Name of the machine; with the id of its boot, because names may repeat."""
    pid: int
    token: str

    @staticmethod
    def here() -> Owner:
        """The process that asks."""
        return Owner(this_machine(), os.getpid(), uuid.uuid4().hex)


def this_machine() -> str:
    """Host name and boot id."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {boot.read_text().strip() if boot.exists() else ''}".strip()


class FolderLease:
    """Holds a folder from `acquire` to `release`."""

    def __init__(self, folder: Path, owner: Owner | None = None) -> None:
        self._folder = folder
        self._owner = owner or Owner.here()
        self._file = folder / ".owner.json"
        self._lock: int | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lost_to: Owner | None = None

    def acquire(self) -> None:
        """Take the folder; raises FolderInUseError if somebody works in it."""
        self._lock = os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise FolderInUseError(
                f"{self._folder} is in use by another process; wait or choose another folder"
            ) from None
        try:
            self._require_no_other_machine()
        except FolderInUseError:
            self.release()
            raise
        write_atomically(self._file, json.dumps(vars(self._owner)) + "\n")
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Give the folder back."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            if self.read() == self._owner:
                self._file.unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def require_held(self) -> None:
        """Raise FolderInUseError if another machine has taken the folder over."""
        if self._lost_to is not None:
            raise FolderInUseError(
                f"{self._folder} was taken over by {_name(self._lost_to)} while this machine gave"
                f" no sign of life for {DEAD_AFTER_S:.0f} s; the run continues there"
            )

    def read(self) -> Owner | None:
        """Whoever has left its name; None if nobody has."""
        try:
            return Owner(**json.loads(self._file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def alive_owner(self) -> Owner | None:
        """Whoever works in the folder now, as far as can be seen from here."""
        found = self.read()
        if found is None:
            return None
        if found.machine == self._owner.machine:
            return found if Path(f"/proc/{found.pid}").exists() else None
        return found if self._age_s() < DEAD_AFTER_S else None

    def _require_no_other_machine(self) -> None:
        found = self.read()
        # Of this machine, the lock has just told that it is gone.
        if found is None or found.machine == self._owner.machine:
            return
        age_s = self._age_s()
        if age_s < DEAD_AFTER_S:
            raise FolderInUseError(
                f"{self._folder} is in use by {_name(found)}, which gave a sign of life"
                f" {max(age_s, 0.0):.0f} s ago; wait until that is {DEAD_AFTER_S:.0f} s, or choose"
                " another folder"
            )

    def _age_s(self) -> float:
        """Since the owner's last sign of life, by the clock of the disk."""
        probe = self._folder / f".clock.{self._owner.token}"
        probe.touch()
        try:
            return probe.stat().st_mtime - self._file.stat().st_mtime
        except FileNotFoundError:  # given back this moment
            return DEAD_AFTER_S
        finally:
            probe.unlink(missing_ok=True)

    def _renew(self) -> None:
        while not self._stop.wait(RENEW_EVERY_S):
            found = self.read()
            if found is not None and found != self._owner:
                self._lost_to = found
                return
            with suppress(OSError):  # a disk that does not answer for a while
                os.utime(self._file)


def _name(owner: Owner) -> str:
    return f"machine {owner.machine.split()[0]} (process {owner.pid})"
