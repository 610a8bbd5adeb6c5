"""What perception tells people: which findings are worth a word, what is news, and its figures.

The node puts this into messages (`perception_status`, `diagnostics`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from equi_core.observation.builder import FusedObservation
from equi_perception.freshness import Cause, Finding

_USUAL = (Cause.ROBOT_MOVING, Cause.CLOUD_BEFORE_REST)
"""Moving is the normal course of an episode, not a state that people need to read about."""
_KEPT_SAMPLES = 200


def worth_telling(findings: Iterable[Finding]) -> list[Finding]:
    """The findings without those that every step of an episode brings."""
    return [finding for finding in findings if finding.cause not in _USUAL]


class StatusNews:
    """Tells a new state from the old one in other words."""

    def __init__(self) -> None:
        self._told: tuple[str, ...] | None = None

    def is_news(self, findings: Iterable[Finding]) -> bool:
        """Whether these findings differ from those of the last call that said so."""
        # Ages in the sentences change all the time: only a new set of causes is news.
        key = tuple(sorted({f.cause.value + f.message[:12] for f in findings}))
        if key == self._told:
            return False
        self._told = key
        return True


class PerceptionFigures:
    """Counts and times of the newest observations."""

    def __init__(self, camera_names: Sequence[str]) -> None:
        self._camera_names = tuple(camera_names)
        self._newest: FusedObservation | None = None
        self._stages_ms: deque[dict[str, float]] = deque(maxlen=_KEPT_SAMPLES)
        self._rejected = dict.fromkeys(self._camera_names, 0)

    def count_rejected(self, camera: str) -> None:
        """Note a cloud that came late or twice."""
        self._rejected[camera] += 1

    def add(self, fused: FusedObservation, stages_ms: Mapping[str, float]) -> None:
        """Note a published observation and how long each stage of it took."""
        self._newest = fused
        self._stages_ms.append(dict(stages_ms))

    def values(self, cloud_ages_s: Sequence[float], observations: int) -> dict[str, str]:
        """Everything for the diagnostics, by the name under which people read it."""
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
