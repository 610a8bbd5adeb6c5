# SPDX-License-Identifier: MIT
"""Latency per stage, from exposure of the camera to the end of the motion."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

STAGES = (
    "exposure_to_observation",
    "inference",
    "observation_to_command",
    "command_to_motion",
    "motion",
    "step",
)
"""`exposure_to_observation` ends with the arrival of the observation at the policy; `step` is the
whole cycle from one command to the next."""


@dataclass(frozen=True)
class StageLatency:
    """One stage over the kept samples [ms]."""

    p50_ms: float
    p99_ms: float
    worst_ms: float
    count: int


class LatencyTracker:
    """Keeps the newest samples of every stage."""

    def __init__(self, size: int = 5000) -> None:
        self._samples: dict[str, deque[float]] = {stage: deque(maxlen=size) for stage in STAGES}

    def add(self, stage: str, milliseconds: float) -> None:
        """Add a sample; an unknown stage is refused."""
        if stage not in self._samples:
            raise KeyError(f"stage '{stage}' is unknown; known: {', '.join(STAGES)}")
        self._samples[stage].append(float(milliseconds))

    def summary(self) -> dict[str, StageLatency]:
        """Median, 99th percentile and worst case of every stage that has samples."""
        return {
            stage: StageLatency(
                p50_ms=float(np.percentile(samples, 50)),
                p99_ms=float(np.percentile(samples, 99)),
                worst_ms=float(max(samples)),
                count=len(samples),
            )
            for stage, samples in self._samples.items()
            if samples
        }
