# SPDX-License-Identifier: MIT
"""Selecting the best policy of a run: evaluations that are played while the run goes on.

The policy's mean plays on scenes of its own, whenever players have nothing else to play. The result
comes with a row of `progress.csv` and the checkpoint of the moment when it was started. A run that
is killed before goes on from the checkpoint before it and evaluates again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equi_core.scene_seeds import SELECTION_SEED
from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.agents.learner import DivergedError
from equi_rl.cluster.pool import Batch
from equi_rl.training.checkpoints import RunCheckpoints, Snapshot
from equi_rl.training.collector import Collector, Play, seeds_from
from equi_rl.training.config import RobotRun
from equi_rl.training.metrics import log_scalars, progress_row
from equi_rl.training.progress import Progress, success_of
from equi_rl.training.run_folder import RunFolder

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Started:
    collector: Collector
    batch: Batch
    snapshot: Snapshot
    metrics: Mapping[str, float]


class PolicySelection:
    """Evaluates policies of one run, one at a time, and keeps the best.

    Attributes:
        writer: of TensorBoard, where successes are logged; None: nowhere.
    """

    def __init__(self, run: RobotRun, folder: RunFolder, checkpoints: RunCheckpoints) -> None:
        self._run, self._folder, self._checkpoints = run, folder, checkpoints
        self._started: _Started | None = None
        self.writer: Any = None

    def start(
        self,
        collector: Collector,
        policy: ActingPolicy,
        snapshot: Snapshot,
        metrics: Mapping[str, float],
    ) -> None:
        """Have a policy evaluated; `finish` the one before first.

        Args:
            collector: who plays.
            policy: what is evaluated.
            snapshot: of the same moment.
            metrics: of the learner, written beside the result.
        """
        work = Play(
            policy,
            seeds_from(SELECTION_SEED, self._run.evaluation_episodes),
            stochastic=False,
            label_with_expert=False,
            randomised=False,
        )
        batch = collector.start(work, later=True)
        self._started = _Started(collector, batch, snapshot, dict(metrics))

    def finish(self, now: Progress, *, wait: bool = True) -> None:
        """Write the result of `start`, if there is one: row, checkpoint, link to the best.

        Args:
            now: progress of the run, which has gone on.
            wait: whether to wait for episodes that are still being played, or do nothing then.
        """
        started = self._started
        if started is None or not (wait or started.batch.is_over):
            return
        self._started = None
        played = started.collector.finish(started.batch)
        self._folder.require_held()
        rate, _ = success_of(played)
        then = started.snapshot.progress
        LOGGER.info("after %d rounds: %s", then.rounds, rate)
        for progress in (then, now):
            progress.failing = 0 if rate.successes else progress.failing + 1
            progress.evaluation_steps += sum(len(episode) for episode, _ in played)
            progress.best_successes = max(rate.successes, progress.best_successes)
        # A killed run drops a row that has no checkpoint and repairs the link of one that has.
        metrics = {**started.metrics, "success": rate.rate}
        self._folder.append_progress([progress_row(then.row(played), metrics)])
        started.snapshot.write(self._checkpoints, rate)
        self._checkpoints.keep_best(then.rounds, rate.successes)
        if self.writer is not None:
            log_scalars(self.writer, {"success": rate.rate}, then.environment_steps)
        if 0 < self._run.failing_evaluations <= then.failing:
            raise DivergedError(
                f"the last {then.failing} evaluations had no success in {len(played)}"
                f" episodes each; the best policy so far ({then.best_successes}"
                f" successes) stays in {self._checkpoints.best}"
            )
