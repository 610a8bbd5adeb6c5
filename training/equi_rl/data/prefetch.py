# SPDX-License-Identifier: MIT
"""Making the next batch while this one is learnt from.

Batches are made one after the other by one thread, so they are those that would have been made
without it, and no more of them than asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def prefetched(make: Callable[[], T], count: int) -> Iterator[T]:
    """`count` results of `make`, each begun when the one before is handed out."""
    with ThreadPoolExecutor(1, "prefetch") as thread:
        upcoming = thread.submit(make) if count else None
        for left in range(count - 1, -1, -1):
            assert upcoming is not None
            ready = upcoming.result()
            upcoming = thread.submit(make) if left else None
            yield ready
