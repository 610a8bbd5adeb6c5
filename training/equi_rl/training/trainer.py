# SPDX-License-Identifier: MIT
"""Trains one agent on one robot task: rounds of collecting and learning, evaluated and resumable.

A round hands the current policy to the collector, makes its updates meanwhile, and then takes the
collected episodes into the replay buffer: what plays lags one round behind what learns, and neither
waits for the other longer than it must. Evaluations are played meanwhile (`selection`);
`progress.evaluations_due` says when they start. The run folder documents itself:

    config.json                 every setting of the run, and the version of the code
    progress.csv                one row per evaluation: counts, success, metrics
    tensorboard/                metrics over environment steps
    replay/                     episodes, written as they arrive
    checkpoints/round_000120/   everything needed to resume, one folder per evaluation and one more
    checkpoints/best            link to the one with the best evaluation so far
"""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from equi_core.scene_seeds import SEEDS_PER_RUN
from equi_core.statistics import SuccessRate
from equi_rl.agents.asymmetric_learner import AsymmetricLearner
from equi_rl.agents.learner import ImitationLearner, Learner, SacLearner
from equi_rl.data.collate import LabelledBatch, collate
from equi_rl.data.device import HOST
from equi_rl.data.prefetch import prefetched
from equi_rl.data.replay_buffer import EPISODE_FORMAT, EpisodeReplayBuffer, stored_episodes
from equi_rl.envs.privileged_state import STATE_SIZE
from equi_rl.envs.randomisation import DomainRandomisation
from equi_rl.experts import ExpertConfig
from equi_rl.nets.agent import build_agent, on_device
from equi_rl.nets.config import reference_config
from equi_rl.nets.weights_digest import weights_digest
from equi_rl.training.checkpoints import RunCheckpoints, Snapshot
from equi_rl.training.collector import (
    Collector,
    CollectorConfig,
    Play,
    Players,
    PlayRandom,
    seeds_from,
)
from equi_rl.training.config import Preset, RobotRun
from equi_rl.training.demonstration_cache import DemonstrationCache
from equi_rl.training.malloc import keep_freed_memory
from equi_rl.training.metrics import log_scalars, progress_row
from equi_rl.training.progress import Progress, evaluations_due, share_done
from equi_rl.training.renames import replay_folder
from equi_rl.training.run_folder import RunFolder, RunFolderError
from equi_rl.training.selection import PolicySelection

LOGGER = logging.getLogger(__name__)
BUDGETS = ("rounds", "environment_steps")
"""What ends a run; a finished one can be resumed with more of it."""

Report = Callable[[Progress, dict[str, float]], None]
"""Called after every round, every demonstration, and every update of pretraining."""


class RobotTrainer:
    """One run in one folder; `train` starts it, or with `resume` continues it."""

    def __init__(
        self,
        run: RobotRun,
        folder: Path,
        players: Players | None = None,
        device: torch.device = HOST,
    ) -> None:
        self.run = run
        self.device = device
        self.players = players or Players()
        self.collector: Collector | None = None
        self.folder = RunFolder(folder)
        self.checkpoints = RunCheckpoints(folder)
        self.selection = PolicySelection(run, self.folder, self.checkpoints)
        torch.manual_seed(run.seed)
        self.rng = np.random.default_rng(run.seed)
        self.progress = Progress()
        self.learner = make_learner(run, device)
        # Last: it creates the folder, and settings that cannot be create nothing.
        self.replay_buffer = EpisodeReplayBuffer(run.replay_capacity, replay_folder(folder))
        self.learner.attach(self.replay_buffer)

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
            started = time.monotonic() - self.progress.seconds
            self.selection.writer = writer = SummaryWriter(
                str(self.folder.tensorboard), purge_step=self.progress.environment_steps + 1
            )
            try:
                with Collector(self._collector_config, self.players) as self.collector:
                    self._train(self.collector, writer, started, report)
            finally:
                writer.close()
            summary = self._summary()
            self.folder.finish(summary)
        return summary

    @property
    def _collector_config(self) -> CollectorConfig:
        return CollectorConfig(
            self.run.task,
            ExpertConfig(first_choice=self.run.first_choice, stiff_arm=self.run.stiff_arm),
            DomainRandomisation() if self.run.randomise else None,
            env_options=self.run.env_options,
            state_frame=self.run.critic_state_frame,
        )

    def _summary(self) -> dict[str, Any]:
        """Progress, and what the run cost; memory is that of the process that finished it."""
        peak_mib = {
            name: round(resource.getrusage(who).ru_maxrss / 1024)
            for name, who in (
                ("learner", resource.RUSAGE_SELF),
                ("collector", resource.RUSAGE_CHILDREN),
            )
        }
        return {
            **self.progress.summary(),
            "peak_memory_mib": peak_mib,
            "player_restarts": self.collector.restarts if self.collector else 0,
            "policy_sha256": weights_digest(dict(self.learner.actor.named_parameters())),
        }

    def _train(
        self, collector: Collector, writer: Any, started: float, report: Report | None
    ) -> None:
        if not len(self.replay_buffer):
            if self.run.continues:
                started -= self._take_over(Path(self.run.continues))
            else:
                self._fill_replay_buffer(collector, report)
            metrics = self._updates(self.run.imitation.updates, report)
            self.progress.seconds = time.monotonic() - started
            if self.run.imitation.updates or self.run.continues:
                self.evaluate(collector, metrics)
                log_scalars(writer, metrics, self.progress.environment_steps)
            else:
                self.save()
        while share_done(self.run, self.progress) < 1.0:
            metrics = self._round(collector)
            self.selection.finish(self.progress, wait=False)
            last = share_done(self.run, self.progress) == 1.0
            if last:  # nothing is played any more while these are made
                metrics |= self._updates(self.progress.owed_updates)
                self.progress.owed_updates = 0
            self.progress.seconds = time.monotonic() - started
            due = evaluations_due(self.run, self.progress)
            if due > self.progress.evaluations:
                self.progress.evaluations = due
                self.evaluate(collector, metrics)
            elif self.progress.rounds % self.run.evaluate_every == 0:
                self.save()
            log_scalars(writer, metrics, self.progress.environment_steps)
            _tell(report, self.progress, metrics)
        self.selection.finish(self.progress)

    def _fill_replay_buffer(self, collector: Collector, report: Report | None) -> None:
        """Successful demonstrations, as many as asked for, and random episodes; learn from each."""
        cache = DemonstrationCache(self._collector_config)
        for episode in cache.successes(collector, self._first_seed(), self.run.demonstrations):
            self.replay_buffer.add(episode)
            self.progress.episodes = len(self.replay_buffer)
            _tell(report, self.progress, {})
        self._pre_updates(report)
        if self.run.random_episodes:
            first = self._first_seed() + SEEDS_PER_RUN // 2
            for episode, _ in collector.play(
                PlayRandom(seeds_from(first, self.run.random_episodes))
            ):
                self.replay_buffer.add(episode)
            self._pre_updates(report)
        self.progress.episodes = len(self.replay_buffer)

    def _pre_updates(self, report: Report | None) -> None:
        """Updates for the steps that the replay buffer has received since the last call."""
        new_steps = self.replay_buffer.n_transitions - self.progress.environment_steps
        self.progress.environment_steps += new_steps
        self._updates(round(self.run.pre_updates_per_step * new_steps), report)

    def _take_over(self, folder: Path) -> float:
        """Episodes, weights and counts of an earlier run; returns the seconds that it took."""
        checkpoint = RunCheckpoints(folder).newest()
        if checkpoint is None:
            raise RunFolderError(f"{folder} holds no checkpoint to continue from")
        task = checkpoint.contract.task
        if task != self.run.task:
            raise RunFolderError(
                f"{folder} is a run on {task}; it cannot continue as {self.run.task}"
            )
        self.learner.start_from(checkpoint.tensors)
        before = Progress(**checkpoint.extra["progress"])
        for episode in stored_episodes(replay_folder(folder), checkpoint.extra["episodes_added"]):
            self.replay_buffer.add(episode)
        self.progress.updates = before.updates
        self.progress.environment_steps = before.environment_steps
        self.progress.episodes = before.episodes
        # The learning curve continues as well; rounds before this run's own count below zero.
        earlier = RunFolder(folder)
        rows = [row for row in earlier.read_progress() if int(row["rounds"]) <= before.rounds]
        self.folder.append_progress(
            [
                progress_row({**row, "rounds": int(row["rounds"]) - before.rounds - 1}, {})
                for row in rows
            ]
        )
        return before.seconds

    def _round(self, collector: Collector) -> dict[str, float]:
        """Learn while the current policy collects episodes; then store them."""
        first = self._first_seed() + SEEDS_PER_RUN // 10 + self.progress.episodes
        collector.request(
            Play(
                self.learner.policy(),
                seeds_from(first, self.run.episodes_per_round),
                stochastic=self.run.preset is not Preset.SHIP,
                label_with_expert=self.run.preset is Preset.SHIP,
                expert_takeover_within=self.run.expert_takeover_in(self.progress.rounds),
                exploration_std=self.run.exploration_std,
            )
        )
        metrics = self._updates(self.run.updates_per_round or self.progress.owed_updates)
        earned = 0.0 if self.run.updates_per_round else self.run.updates_per_step
        return metrics | self.progress.add_round(collector.fetch(), self.replay_buffer, earned)

    def _updates(self, count: int, report: Report | None = None) -> dict[str, float]:
        """So many updates; returns the metrics of the last one, which is diagnosed."""
        metrics: dict[str, float] = {}
        # The buffer does not change meanwhile, so a batch made ahead is the same batch. On the host
        # the learner and the players need the cores themselves.
        ahead = self.device != HOST
        batches = prefetched(self._batch, count) if ahead else map(_call, [self._batch] * count)
        for number in range(count):
            metrics = self._update(batches=batches, diagnose=number == count - 1)
            _tell(report, self.progress, metrics)
        return metrics

    def _batch(self) -> LabelledBatch:
        """The next batch, on the device that learns."""
        episodes = self.replay_buffer.sample(
            self.run.batch_episodes,
            self.rng,
            self.run.demonstrations_per_batch,
            self.run.recent_per_batch,
            self.run.recent_episodes,
        )
        size = self.learner.actor.config.observation_size
        return collate(episodes, size, self.rng, self.run.augmentation, self.device)

    def _update(
        self, *, batches: Iterator[LabelledBatch], diagnose: bool = False
    ) -> dict[str, float]:
        metrics = self.learner.update(next(batches), diagnose=diagnose)
        self.progress.updates += 1
        return metrics

    def evaluate(self, collector: Collector, metrics: Mapping[str, float] | None = None) -> None:
        """Have the policy evaluated as it is now, while the run goes on (`PolicySelection`)."""
        self.selection.finish(self.progress)
        self.selection.start(collector, self.learner.policy(), self._snapshot(), metrics or {})

    def _first_seed(self) -> int:
        return self.run.seed * SEEDS_PER_RUN

    def save(self, rate: SuccessRate | None = None) -> None:
        """Write everything that is needed to resume from here, and the evaluation if there is."""
        self.selection.finish(self.progress)
        self.folder.require_held()
        self._snapshot().write(self.checkpoints, rate)

    def _snapshot(self) -> Snapshot:
        return Snapshot.take(self.run, self.progress, self.learner, self.rng, self.replay_buffer)

    def restore(self) -> None:
        """Take over the newest checkpoint; without one, the run starts over."""
        checkpoint = self.checkpoints.newest()
        if checkpoint is None:
            self.replay_buffer.restore(0)
            self.folder.drop_progress()
            return
        extra = checkpoint.extra
        self.replay_buffer.restore(int(extra["episodes_added"]))
        self.learner.restore(checkpoint.tensors, extra["learner"])
        torch.set_rng_state(checkpoint.tensors["torch_rng"])
        self.rng.bit_generator.state = extra["rng"]
        self.progress = Progress(**extra["progress"])
        self.folder.cut_progress("rounds", self.progress.rounds)
        provenance = checkpoint.contract.provenance
        if provenance.evaluation_episodes:
            self.checkpoints.keep_best(self.progress.rounds, provenance.evaluation_successes)


def make_learner(run: RobotRun, device: torch.device = HOST) -> Learner:
    """Networks and learning method of a run, on a device; they start with the same weights."""
    network = reference_config(
        run.group,
        initial_state=run.initial_state,
        critic_heads=run.sac.critic_heads,
        critic_layer_norm=run.sac.critic_layer_norm,
    )
    built_actor, built_critic = build_agent(run.kind.combination, network)
    actor, critic = on_device(built_actor, device), on_device(built_critic, device)
    if run.preset is Preset.SHIP:
        planned = run.imitation.updates + run.rounds * run.updates_per_round
        return ImitationLearner(actor, run.imitation, planned)
    if run.learns_from_values:
        planned = round(run.updates_per_step * run.environment_steps)
        return AsymmetricLearner(
            actor, STATE_SIZE, run.asymmetric, run.imitation, planned, run.recent_episodes
        )
    return SacLearner(actor, critic, run.sac, run.imitation)


def _call(make: Callable[[], LabelledBatch]) -> LabelledBatch:
    return make()


def _tell(report: Report | None, progress: Progress, metrics: dict[str, float]) -> None:
    if report is not None:
        report(progress, metrics)
