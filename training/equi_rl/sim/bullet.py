# SPDX-License-Identifier: MIT
"""PyBullet without the greetings that its library writes past Python.

They come when it is imported and when a server starts, and may be flushed only at exit, after the
last line of a command whose last line must be JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Send what C code writes to standard output and error to nowhere."""
    sys.stdout.flush()
    sys.stderr.flush()
    c_library = ctypes.CDLL(None)
    c_library.fflush(None)
    saved = [os.dup(stream) for stream in (1, 2)]
    sink = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(sink, stream)
    try:
        yield
    finally:
        c_library.fflush(None)
        for stream, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, stream)
            os.close(copy)
        os.close(sink)


with _quiet():
    import pybullet
    from pybullet_utils.bullet_client import BulletClient


def new_client() -> BulletClient:
    """A physics server of its own, in this process."""
    with _quiet():
        return BulletClient(connection_mode=pybullet.DIRECT)


__all__ = ["BulletClient", "new_client", "pybullet"]
