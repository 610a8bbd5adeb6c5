# SPDX-License-Identifier: MIT
"""How far a run is, and what that means for it: when it ends, learns, and is evaluated.

All of it follows from the counts alone, so a resumed run decides as one that was not killed. The
same for every learner on robot tasks, SLAC's too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from equi_core.statistics import SuccessRate
from equi_rl.training.config import RobotRun

if TYPE_CHECKING:
    from equi_rl.data.replay_buffer import EpisodeReplayBuffer
    from equi_rl.training.collector import Played

_RECENT_EPISODES = 100


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

    def summary(self) -> dict[str, Any]:
        """The counts, and how fast they grew, for the end of a run."""
        seconds = max(self.seconds, 1e-9)
        return {
            **{name: value for name, value in vars(self).items() if name != "recent"},
            "environment_steps_per_s": round(self.environment_steps / seconds, 2),
            "updates_per_s": round(self.updates / seconds, 3),
        }

    def row(self, played: Played) -> dict[str, Any]:
        """Columns of `progress.csv` for an evaluation at this moment."""
        rate, lengths = success_of(played)
        return {
            "rounds": self.rounds,
            "updates": self.updates,
            "environment_steps": self.environment_steps,
            "seconds": round(self.seconds, 1),
            "successes": rate.successes,
            "episodes": rate.episodes,
            "mean_length": round(float(np.mean(lengths)) if lengths else float("nan"), 2),
        }

    def add_round(
        self, played: Played, replay_buffer: EpisodeReplayBuffer, updates_per_step: float
    ) -> dict[str, float]:
        """Take a round's episodes into the replay buffer.

        Args:
            played: what the policy has done, with the noise of training.
            replay_buffer: where it goes.
            updates_per_step: updates that each new step earns; they are owed from now on.

        Returns:
            What the episodes tell, for the log.
        """
        before = self.environment_steps
        for episode, outcome in played:
            replay_buffer.add(episode)
            self.environment_steps += len(episode)
            self.recent.append(outcome.success)
        del self.recent[:-_RECENT_EPISODES]
        self.episodes += len(played)
        self.rounds += 1
        self.owed_updates = updates_for(updates_per_step, before, self.environment_steps - before)
        clipped = np.concatenate([episode.is_clipped for episode, _ in played])
        return {
            "training_success": float(np.mean(self.recent)),
            "clipped_requests": float(np.mean(clipped)),
        }


def success_of(played: Played) -> tuple[SuccessRate, list[int]]:
    """Success of episodes, and the lengths of those that succeeded [steps]."""
    lengths = [len(episode) for episode, outcome in played if outcome.success]
    return SuccessRate(len(lengths), len(played)), lengths


def share_done(run: RobotRun, progress: Progress) -> float:
    """How much of the run is done, from 0 to 1, by the limit that ends it first."""
    by_rounds = progress.rounds / run.rounds if run.rounds else 0.0
    budget = run.environment_steps
    by_steps = progress.environment_steps / budget if budget else 0.0
    return min(1.0, max(by_rounds, by_steps))


def updates_for(per_step: float, steps_before: int, new_steps: int) -> int:
    """Whole updates due for new environment steps; fractions are carried on to later steps."""
    return math.floor(per_step * (steps_before + new_steps)) - math.floor(per_step * steps_before)


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
