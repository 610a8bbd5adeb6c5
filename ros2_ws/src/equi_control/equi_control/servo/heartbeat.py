# SPDX-License-Identifier: MIT
"""A sign of life from the driver to its servo process: one time in shared memory.

The pipe between them tells when the driver is dead. A driver that hangs keeps its pipe open, hears
no `hold` and checks no limit.
"""

from __future__ import annotations

import multiprocessing
import time
from typing import Any


class Heartbeat:
    """Beaten by one process, read by another; picklable into a spawned process."""

    def __init__(self, context: Any = None) -> None:
        maker = context or multiprocessing.get_context("spawn")
        # One aligned double: written and read whole.
        self._time_s = maker.RawValue("d", time.monotonic())

    def beat(self) -> None:
        """I am alive."""
        self._time_s.value = time.monotonic()

    def age_s(self) -> float:
        """Time since the last beat [s]."""
        return time.monotonic() - float(self._time_s.value)
