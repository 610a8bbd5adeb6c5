# SPDX-License-Identifier: MIT
"""How far a run is, and what that means for it: when it ends, learns, and is evaluated.

All of it follows from the counts alone, so a resumed run decides as one that was not killed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from equi_rl.training.config import RobotRun


@dataclass
class Progress:
    """Counts of a run; part of its checkpoint."""

    rounds: int = 0
    updates: int = 0
    environment_steps: int = 0
    """Steps in the replay buffer so far: demonstrations, random episodes, episodes of policies."""
    episodes: int = 0
    owed_updates: int = 0
    """Updates for the episodes collected last, made while the next ones are played."""
    evaluation_steps: int = 0
    """Environment steps of all evaluations."""
    best_successes: int = -1
    failing: int = 0
    """Evaluations without a success since the last one with any."""
    seconds: float = 0.0
    recent: list[bool] = field(default_factory=list)
    """Success of the latest training episodes, newest last."""


def share_done(run: RobotRun, progress: Progress) -> float:
    """How much of the run is done, from 0 to 1, by the limit that ends it first."""
    by_rounds = progress.rounds / run.rounds if run.rounds else 0.0
    budget = run.environment_steps
    by_steps = progress.environment_steps / budget if budget else 0.0
    return min(1.0, max(by_rounds, by_steps))


def updates_for(run: RobotRun, steps_before: int, new_steps: int) -> int:
    """Whole updates due for new environment steps; fractions are carried on to later steps."""
    ratio = run.updates_per_step
    return math.floor(ratio * (steps_before + new_steps)) - math.floor(ratio * steps_before)


def can_afford_evaluation(run: RobotRun, progress: Progress) -> bool:
    """Whether one more evaluation keeps all of them, the last one included, within their share.

    Evaluations together take at most `evaluation_share` of the run's environment steps, even if
    every episode of them lasts to its end. What the last evaluation may take is set aside evenly
    over the run.
    """
    if run.evaluation_share is None:
        return True
    longest = run.longest_evaluation_steps
    available = run.evaluation_share * progress.environment_steps
    set_aside = longest * share_done(run, progress)
    return progress.evaluation_steps + longest <= available - set_aside
