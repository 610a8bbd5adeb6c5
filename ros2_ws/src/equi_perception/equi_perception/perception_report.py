# SPDX-License-Identifier: MIT
"""What perception reports: which issues are reportable, when its status changed, and its metrics.

The node puts this into messages (`perception_status`, `diagnostics`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from equi_core.observation.builder import FusedObservation
from equi_perception.freshness import Cause, Issue

_USUAL = (Cause.ROBOT_MOVING, Cause.CLOUD_BEFORE_REST)
"""Every step of an episode brings these; an operator need not read about them."""
_KEPT_SAMPLES = 200


def reportable(issues: Iterable[Issue]) -> list[Issue]:
    """The issues without those that every step of an episode brings."""
    return [issue for issue in issues if issue.cause not in _USUAL]


class StatusDebouncer:
    """Says whether a status differs from the last one that was published."""

    def __init__(self) -> None:
        self._published: tuple[str, ...] | None = None

    def changed(self, issues: Iterable[Issue]) -> bool:
        """Whether these issues differ from those of the last call that returned True."""
        # Ages in the messages change all the time: only a new set of causes counts.
        key = tuple(sorted({f.cause.value + f.message[:12] for f in issues}))
        if key == self._published:
            return False
        self._published = key
        return True


class PerceptionMetrics:
    """Counts and times of the newest observations."""

    def __init__(self, camera_names: Sequence[str]) -> None:
        self._camera_names = tuple(camera_names)
        self._newest: FusedObservation | None = None
        self._stages_ms: deque[dict[str, float]] = deque(maxlen=_KEPT_SAMPLES)
        self._rejected = dict.fromkeys(self._camera_names, 0)

    def count_rejected(self, camera: str) -> None:
        """Count a cloud that came late or twice."""
        self._rejected[camera] += 1

    def add(self, fused: FusedObservation, stages_ms: Mapping[str, float]) -> None:
        """Add a published observation and the time of each of its stages."""
        self._newest = fused
        self._stages_ms.append(dict(stages_ms))

    def values(self, cloud_ages_s: Sequence[float], observations: int) -> dict[str, str]:
        """Values of the diagnostics message by name."""
        values = {
            f"{name} age [s]": f"{age_s:.3f}"
            for name, age_s in zip(self._camera_names, cloud_ages_s, strict=True)
        }
        values["observations"] = str(observations)
        if self._newest is not None:
            values["unseen fraction"] = f"{self._newest.unseen_fraction:.4f}"
            for index, name in enumerate(self._camera_names):
                values[f"{name} points in view"] = str(self._newest.points_in_view[index])
                values[f"{name} points on robot"] = str(self._newest.points_on_robot[index])
                values[f"{name} clouds out of order"] = str(self._rejected[name])
        for stage in self._stages_ms[-1] if self._stages_ms else ():
            times_ms = [sample[stage] for sample in self._stages_ms]
            values[f"{stage} p50 [ms]"] = f"{np.percentile(times_ms, 50):.2f}"
            values[f"{stage} p99 [ms]"] = f"{np.percentile(times_ms, 99):.2f}"
        return values
