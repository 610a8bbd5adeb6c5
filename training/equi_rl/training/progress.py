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
    evaluations: int = 0
    """Evaluations that were due so far, the one after pretraining not counted."""
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


def evaluations_due(run: RobotRun, progress: Progress) -> int:
    """Evaluations that should have been made by now, the one after pretraining not counted.

    With `evaluation_share` they lie at equal distances in environment steps, the last at the end,
    so runs of several seeds and agents are evaluated at the same steps. Without, there is one every
    `evaluate_every` rounds and one at the end.
    """
    done = share_done(run, progress)
    if run.evaluation_share is not None:
        return math.floor(run.planned_evaluations * done)
    regular, rest = divmod(progress.rounds, run.evaluate_every)
    return regular + (1 if done == 1.0 and rest else 0)
