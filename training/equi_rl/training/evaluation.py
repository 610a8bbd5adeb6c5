# SPDX-License-Identifier: MIT
"""Results of evaluating a policy: success with its interval, split as the paper splits it.

The split is by what happened: whether the first object that the gripper went down to was the
movable one. A policy that cannot tell the objects apart succeeds at once in the first half and must
change its mind in the second.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from equi_core.files.plain_data import PlainDataError, read_json
from equi_core.statistics import SuccessRate
from equi_core.strict_fields import FieldError, read_fields
from equi_rl.data.atomic_file import write_atomically
from equi_rl.training.rollout import EpisodeOutcome

RESULT_FILE = "evaluation.json"


class EvaluationError(ValueError):
    """An evaluation that cannot be run, read or trusted; says why."""


@dataclass(frozen=True)
class Evaluation:
    """Episodes of one policy on one task."""

    task: str
    weights: str
    """Digest of the weights that were evaluated."""
    first_seed: int
    randomised: bool
    """Whether sizes, masses, friction, calibration and depth varied."""
    outcomes: tuple[EpisodeOutcome, ...]
    stiff_arm: bool = False
    """Whether the arm was as stiff as a real one (`equi_rl.sim.stiff_arm`)."""

    @property
    def overall(self) -> SuccessRate:
        """All episodes."""
        return _rate(self.outcomes)

    @property
    def splits(self) -> dict[str, tuple[EpisodeOutcome, ...]]:
        """Episodes by which object was tried first."""
        names = {True: "movable first", False: "immovable first", None: "none tried"}
        groups = {
            name: tuple(o for o in self.outcomes if o.movable_first is first)
            for first, name in names.items()
        }
        return {name: group for name, group in groups.items() if group}

    @property
    def failures(self) -> dict[str, int]:
        """How often an episode ended without success, by reason; the most frequent first."""
        return dict(Counter(o.failure for o in self.outcomes if not o.success).most_common())

    def rows(self) -> list[tuple[str, SuccessRate, float]]:
        """(name, success, mean length of successes [steps]) for all episodes and each split."""
        groups = {"all": self.outcomes, **self.splits}
        return [(name, _rate(group), _mean_length(group)) for name, group in groups.items()]

    def save(self, folder: Path) -> Path:
        """Write the result with every episode, so that each can be played again."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / RESULT_FILE
        content = {
            "task": self.task,
            "weights": self.weights,
            "first_seed": self.first_seed,
            "randomised": self.randomised,
            "stiff_arm": self.stiff_arm,
            "success": _metrics(self.outcomes),
            "splits": {name: _metrics(group) for name, group in self.splits.items()},
            "failures": self.failures,
            "episodes": [dataclasses.asdict(outcome) for outcome in self.outcomes],
        }
        write_atomically(path, json.dumps(content, indent=1) + "\n")
        return path

    @classmethod
    def load(cls, folder: Path) -> Evaluation:
        """Read what `save` wrote."""
        path = folder / RESULT_FILE
        try:
            content: dict[str, Any] = read_json(path)
            return cls(
                content["task"],
                content["weights"],
                content["first_seed"],
                content["randomised"],
                tuple(read_fields(EpisodeOutcome, episode) for episode in content["episodes"]),
                content.get("stiff_arm", False),  # results of before have no such field
            )
        except (KeyError, TypeError, PlainDataError, FieldError) as error:
            raise EvaluationError(
                f"{path} is not a result of equi-evaluate ({error}); run equi-evaluate again"
            ) from error


def _rate(outcomes: Iterable[EpisodeOutcome]) -> SuccessRate:
    flags = [outcome.success for outcome in outcomes]
    return SuccessRate(sum(flags), len(flags))


def _mean_length(outcomes: Sequence[EpisodeOutcome]) -> float:
    lengths = [outcome.steps for outcome in outcomes if outcome.success]
    return float(np.mean(lengths)) if lengths else float("nan")


def _metrics(outcomes: Sequence[EpisodeOutcome]) -> dict[str, Any]:
    rate, length = _rate(outcomes), _mean_length(outcomes)
    return {
        "successes": rate.successes,
        "episodes": rate.episodes,
        "interval_95": [round(bound, 4) for bound in rate.interval],
        "mean_length": round(length, 2) if rate.successes else None,
    }
