# SPDX-License-Identifier: MIT
"""What a worker runs, whatever carries its messages: a function of (shared value, item).

The shared value, for example the weights of a round, is sent once and remembered by its key; items
are small. Everything crosses as bytes, so a result never refers to memory of the worker's machine.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_PR_SET_PDEATHSIG = 1

Function = Callable[[Any, Any], Any]
"""Takes the shared value and one item. May have a method `close`."""
Build = Callable[[Any], Function]
"""Makes the function from plain settings, in the worker; importable by name."""


@dataclass(frozen=True)
class Shared:
    """A value that many items need; pickled once."""

    key: int
    payload: bytes

    @classmethod
    def of(cls, key: int, value: Any) -> Shared:
        """A value under a key that no other value has had."""
        return cls(key, pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))


class WorkServer:
    """Holds the function and the newest shared value."""

    def __init__(self, build: Build, settings: Any) -> None:
        self._function = build(settings)
        self._key: int | None = None
        self._value: Any = None

    def has(self, key: int) -> bool:
        """Whether this shared value is the one remembered."""
        return self._key == key

    def remember(self, key: int, payload: bytes) -> None:
        """Keep a shared value in place of the one before."""
        if not self.has(key):
            self._key, self._value = key, pickle.loads(payload)

    def run(self, item: Any) -> tuple[bool, bytes]:
        """(True, pickled result), or (False, the traceback as text)."""
        try:
            result = self._function(self._value, item)
        except Exception:  # sent to whoever asked, who raises it there
            return False, traceback.format_exc().encode()
        return True, pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL)

    def close(self) -> None:
        """Close the function if it can be closed."""
        close = getattr(self._function, "close", None)
        if close is not None:
            close()


def die_with_parent(parent: int, how: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel end this process when the thread that started it ends, however that happens.

    Args:
        parent: process id of the parent as the starter knows it.
        how: the signal that ends it.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(how), 0, 0, 0)
    if os.getppid() != parent:  # it was gone before the kernel knew
        os.kill(os.getpid(), how)
