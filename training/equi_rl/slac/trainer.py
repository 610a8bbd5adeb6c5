# SPDX-License-Identifier: MIT
"""Trains SLAC on one robot task: data, latent pretraining, then rounds as of every other agent.

A round hands the current policy to the collector, makes the updates that the round before has
earned, and takes the collected episodes into the replay buffer. Scenes, demonstrations and random
episodes are those of the preset `paper` with the same seed. The run folder is that of
`training.run_folder`, with the episodes beside it in `replay/`.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from equi_core.scene_seeds import SEEDS_PER_RUN, SELECTION_SEED
from equi_core.statistics import SuccessRate
from equi_rl.data.collate import LabelledBatch, collate
from equi_rl.data.replay_buffer import EPISODE_FORMAT, EpisodeReplayBuffer, delete_files
from equi_rl.experts import ExpertConfig
from equi_rl.nets.weights_digest import weights_digest
from equi_rl.slac.config import SlacRun
from equi_rl.slac.learner import SlacLearner
from equi_rl.slac.metrics import COLUMNS, METRICS
from equi_rl.training.collector import (
    Collector,
    CollectorConfig,
    Play,
    Players,
    PlayRandom,
    seeds_from,
)
from equi_rl.training.demonstration_cache import DemonstrationCache
from equi_rl.training.malloc import keep_freed_memory
from equi_rl.training.metrics import log_scalars, progress_row
from equi_rl.training.progress import Progress, success_of
from equi_rl.training.run_folder import RunFolder

LOGGER = logging.getLogger(__name__)
BUDGETS = ("environment_steps",)
"""What ends a run; a finished one can be resumed with more of it."""
SAVE_EVERY_UPDATES = 500
"""Of the latent pretraining; afterwards a checkpoint comes with the rounds."""
_SAVE_EVERY_ROUNDS = 25

Report = Callable[[Progress, dict[str, float]], None]
"""Called after every demonstration, every update of the pretraining and every round."""


class SlacTrainer:
    """One run in one folder; `train` starts it, or with `resume` continues it."""

    def __init__(self, run: SlacRun, folder: Path, players: Players | None = None) -> None:
        self.run = run
        self.players = players or Players()
        self.folder = RunFolder(folder)
        torch.manual_seed(run.seed)
        self.rng = np.random.default_rng(run.seed)
        self.progress = Progress()
        self.learner = SlacLearner(run)
        self.replay_buffer = EpisodeReplayBuffer(run.replay_capacity, folder / "replay")
        self._writer: Any = None
        self._started_s = 0.0

    def train(self, *, resume: bool = False, report: Report | None = None) -> dict[str, Any]:
        """Run to the end; returns the summary that is also written to the folder."""
        from torch.utils.tensorboard import SummaryWriter

        keep_freed_memory()
        torch.set_num_threads(1)  # the other cores play, and the bits of a run depend on it
        with self.folder.claim(
            self.run.to_mapping(), resume=resume, data_format=EPISODE_FORMAT, budgets=BUDGETS
        ):
            if self.folder.is_finished:
                return self.folder.read_summary()
            self.restore()
            self._started_s = time.monotonic() - self.progress.seconds
            self._writer = SummaryWriter(
                str(self.folder.tensorboard), purge_step=self.progress.environment_steps + 1
            )
            try:
                with Collector(self._collector_config, self.players) as collector:
                    self._train(collector, report)
            finally:
                self._writer.close()
            summary = self._summary()
            self.folder.finish(summary)
        return summary

    @property
    def _collector_config(self) -> CollectorConfig:
        return CollectorConfig(
            self.run.task,
            ExpertConfig(first_choice=self.run.first_choice),
            env_options=self.run.env_options,
        )

    def _train(self, collector: Collector, report: Report | None) -> None:
        if not len(self.replay_buffer):
            self._fill_replay_buffer(collector, report)
            self.save()
        while self.learner.is_pretraining:
            metrics = self._updates(1)
            _tell(report, self.progress, metrics)
            if self.learner.updates % SAVE_EVERY_UPDATES == 0:
                self._log(metrics)
                LOGGER.info("%d updates of the latent model: %s", self.learner.updates, metrics)
                self.save()
        if not self.progress.evaluation_steps:  # an actor that has learnt nothing yet
            self._evaluate(collector, {})
            self.save()
        while self.progress.environment_steps < self.run.environment_steps:
            metrics = self._round(collector)
            if self.progress.environment_steps >= self.run.environment_steps:
                metrics |= self._updates(self.progress.owed_updates)
                self.progress.owed_updates = 0
            if self._evaluations_due() > self.progress.evaluations:
                self.progress.evaluations = self._evaluations_due()
                metrics["success"] = self._evaluate(collector, metrics).rate
                self.save()
            elif self.progress.rounds % _SAVE_EVERY_ROUNDS == 0:
                self.save()
            self._log(metrics)
            _tell(report, self.progress, metrics)

    def _fill_replay_buffer(self, collector: Collector, report: Report | None) -> None:
        """Successful demonstrations, as many as asked for, and random episodes."""
        cache = DemonstrationCache(self._collector_config)
        first = self.run.seed * SEEDS_PER_RUN
        for episode in cache.successes(collector, first, self.run.demonstrations):
            self.replay_buffer.add(episode)
            self.progress.episodes = len(self.replay_buffer)
            _tell(report, self.progress, {})
        if self.run.random_episodes:
            seeds = seeds_from(first + SEEDS_PER_RUN // 2, self.run.random_episodes)
            for episode, _ in collector.play(PlayRandom(seeds)):
                self.replay_buffer.add(episode)
        self.progress.episodes = len(self.replay_buffer)
        self.progress.environment_steps = self.replay_buffer.n_transitions
        self.progress.evaluations = self._evaluations_due()

    def _round(self, collector: Collector) -> dict[str, float]:
        """Learn while the current policy collects episodes; then store them."""
        first = self.run.seed * SEEDS_PER_RUN + SEEDS_PER_RUN // 10 + self.progress.episodes
        collector.request(
            Play(
                self.learner.policy(),
                seeds_from(first, self.run.episodes_per_round),
                stochastic=True,
                label_with_expert=False,
            )
        )
        metrics = self._updates(self.progress.owed_updates)
        return metrics | self.progress.add_round(
            collector.fetch(), self.replay_buffer, self.run.updates_per_step
        )

    def _updates(self, count: int) -> dict[str, float]:
        """So many updates; returns the metrics of the last one."""
        metrics: dict[str, float] = {}
        for _ in range(count):
            metrics = self.learner.update(self._batch())
            self.progress.updates += 1
        self.progress.seconds = time.monotonic() - self._started_s
        return metrics

    def _log(self, metrics: dict[str, float]) -> None:
        log_scalars(self._writer, metrics, self.progress.environment_steps, METRICS)

    def _batch(self) -> LabelledBatch:
        episodes = self.replay_buffer.sample(self.run.batch_episodes, self.rng)
        size = self.run.contract.image.size_px
        return collate(episodes, size, self.rng, self.run.augmentation)

    def _evaluations_due(self) -> int:
        """Evaluations that should have been made by now, the one before the first round apart."""
        total = self.run.environment_steps
        done = min(1.0, self.progress.environment_steps / total)
        return math.floor(self.run.evaluations * done)

    def _evaluate(self, collector: Collector, metrics: dict[str, float]) -> SuccessRate:
        """Play the policy's mean, and write a row of the result."""
        seeds = seeds_from(SELECTION_SEED, self.run.evaluation_episodes)
        work = Play(self.learner.policy(), seeds, stochastic=False, label_with_expert=False)
        played = collector.play(work)
        rate, _ = success_of(played)
        progress = self.progress
        progress.seconds = time.monotonic() - self._started_s
        progress.evaluation_steps += sum(len(episode) for episode, _ in played)
        progress.best_successes = max(rate.successes, progress.best_successes)
        LOGGER.info("after %d environment steps: %s", progress.environment_steps, rate)
        metrics = {**metrics, "success": rate.rate}
        self.folder.append_progress([progress_row(progress.row(played), metrics, COLUMNS)])
        return rate

    def save(self) -> None:
        """Write everything that is needed to resume from here."""
        tensors = {**self.learner.tensors(), "torch_rng": torch.get_rng_state()}
        self.folder.save_checkpoint(
            {name: tensor.detach().numpy() for name, tensor in tensors.items()},
            {
                "learner": self.learner.state(),
                "rng": self.rng.bit_generator.state,
                "episodes_added": self.replay_buffer.n_added,
                "progress": dataclasses.asdict(self.progress),
            },
        )
        delete_files(self.replay_buffer.take_evicted())

    def restore(self) -> None:
        """Take over the checkpoint; without one, the run starts over."""
        checkpoint = self.folder.load_checkpoint()
        if checkpoint is None:
            self.replay_buffer.restore(0)
            self.folder.drop_progress()
            return
        arrays, state = checkpoint
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        self.replay_buffer.restore(int(state["episodes_added"]))
        torch.set_rng_state(tensors.pop("torch_rng"))
        self.learner.restore(tensors, state["learner"])
        self.rng.bit_generator.state = state["rng"]
        self.progress = Progress(**state["progress"])
        self.folder.cut_progress("rounds", self.progress.rounds)

    def _summary(self) -> dict[str, Any]:
        return {
            **self.progress.summary(),
            "latent_updates": min(self.run.latent_updates, self.learner.updates),
            "policy_sha256": weights_digest(dict(self.learner.sac.actor.named_parameters())),
        }


def _tell(report: Report | None, progress: Progress, metrics: dict[str, float]) -> None:
    if report is not None:
        report(progress, metrics)
