# SPDX-License-Identifier: MIT
"""glibc's malloc: keep freed memory for the next update."""

from __future__ import annotations

import ctypes

# Parameters of glibc's mallopt.
_M_TRIM_THRESHOLD, _M_MMAP_MAX = -1, -4
_NEVER = 2**31 - 1


def keep_freed_memory() -> bool:
    """Reuse freed memory instead of returning it to the system; whether the system allows that.

    Every update frees and takes hundreds of megabytes for images and activations. Returned to the
    system, each page comes back by a fault and filled with zeros, a fifth of an update's time.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # not glibc
        return False
    return bool(mallopt(_M_MMAP_MAX, 0) and mallopt(_M_TRIM_THRESHOLD, _NEVER))
