"""Trains one agent on one robot task: rounds of playing and learning, evaluated and resumable.

A round hands the current policy to the collector, makes its updates meanwhile, and then takes the
played episodes into memory. Evaluation plays the policy's mean on scenes of its own. The run
folder documents itself:

    config.json                 every setting of the run, and the version of the code
    progress.csv                one row per evaluation: steps, updates, success, seconds
    tensorboard/                losses and success over time
    memory/                     episodes, written as they arrive
    checkpoints/round_000120/   everything needed to go on, one folder per evaluation
    checkpoints/best            link to the one with the best evaluation so far
"""

from __future__ import annotations

import csv
import json
import logging
import os
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from equi_core.contract import PolicyContract, Provenance
from equi_core.statistics import SuccessRate
from equi_rl.agents.learner import ImitationLearner, Learner
from equi_rl.batch import collate
from equi_rl.code_version import code_version
from equi_rl.collector import (
    Collector,
    CollectorConfig,
    Demonstrate,
    Play,
    PlayRandom,
    seeds_from,
)
from equi_rl.experts import ExpertConfig
from equi_rl.nets.agent import build_agent
from equi_rl.nets.checkpoint import Checkpoint, CheckpointError, load_checkpoint, save_checkpoint
from equi_rl.nets.config import reference_config
from equi_rl.replay import EpisodeMemory
from equi_rl.robot_config import SEEDS_PER_RUN, SELECTION_SEED, Preset, RobotRun

LOGGER = logging.getLogger(__name__)


class RunFolderError(ValueError):
    """A run folder that holds another run, or nothing to continue; says what to do."""


@dataclass
class Progress:
    """How far a run is; part of its checkpoint."""

    rounds: int = 0
    updates: int = 0
    environment_steps: int = 0
    episodes: int = 0
    best_successes: int = -1
    seconds: float = 0.0
    recent: list[bool] = field(default_factory=list)
    """Success of the latest training episodes, newest last."""


class RobotTrainer:
    """One run in one folder.

    Args:
        run: what to train.
        folder: run folder; created, or continued if `resume`.
        resume: go on from the folder's last checkpoint.
    """

    def __init__(self, run: RobotRun, folder: Path, resume: bool = False) -> None:
        self.run, self.folder = run, folder
        _claim_folder(run, folder, resume)
        torch.manual_seed(run.seed)
        self.rng = np.random.default_rng(run.seed)
        self.memory = EpisodeMemory(run.capacity, folder / "memory")
        self.progress = Progress()
        self.learner = make_learner(run)
        if resume:
            self._restore()

    def train(self, report: Any = None) -> Progress:
        """Run to the end; `report(progress, figures)` is called after every round."""
        from torch.utils.tensorboard import SummaryWriter

        started = time.monotonic() - self.progress.seconds
        writer = SummaryWriter(str(self.folder / "tensorboard"))
        config = CollectorConfig(self.run.task, ExpertConfig(first_choice=self.run.first_choice))
        try:
            with Collector(config) as collector:
                if not len(self.memory):
                    self._fill_memory(collector)
                    self._warm_up(report)
                while self.progress.rounds < self.run.rounds:
                    figures = self._round(collector)
                    self.progress.seconds = time.monotonic() - started
                    if self.progress.rounds % self.run.evaluate_every == 0:
                        figures["success"] = self._evaluate(collector).rate
                    for name, value in figures.items():
                        writer.add_scalar(name, value, self.progress.environment_steps)
                    if report is not None:
                        report(self.progress, figures)
        finally:
            writer.close()
        return self.progress

    def _fill_memory(self, collector: Collector) -> None:
        """Successful demonstrations, as many as asked for, and random episodes."""
        seed = self._first_seed()
        stored = 0
        while stored < self.run.demonstrations:
            missing = self.run.demonstrations - stored
            for episode, outcome in collector.play(Demonstrate(seeds_from(seed, missing))):
                if outcome.success:
                    self.memory.add(episode)
                    stored += 1
            seed += missing
        if self.run.random_episodes:
            first = self._first_seed() + SEEDS_PER_RUN // 2
            for episode, _ in collector.play(
                PlayRandom(seeds_from(first, self.run.random_episodes))
            ):
                self.memory.add(episode)
        self.progress.environment_steps = self.memory.n_transitions
        self.progress.episodes = len(self.memory)

    def _warm_up(self, report: Any) -> None:
        for _ in range(self.run.warm_up_updates):
            figures = self._update()
            if report is not None:
                report(self.progress, figures)

    def _round(self, collector: Collector) -> dict[str, float]:
        """Learn while the current policy plays; then remember what it played."""
        first = self._first_seed() + SEEDS_PER_RUN // 10 + self.progress.episodes
        collector.request(
            Play(
                self.learner.policy(),
                seeds_from(first, self.run.episodes_per_round),
                stochastic=self.run.preset is not Preset.SHIP,
                commented=self.run.preset is Preset.SHIP,
            )
        )
        figures: dict[str, float] = {}
        for _ in range(self.run.updates_per_round):
            figures = self._update()
        played = collector.fetch()
        for episode, outcome in played:
            self.memory.add(episode)
            self.progress.environment_steps += len(episode)
            self.progress.recent.append(outcome.success)
        del self.progress.recent[:-100]
        self.progress.episodes += len(played)
        self.progress.rounds += 1
        if self.run.updates_per_round == 0:
            for _ in range(sum(len(episode) for episode, _ in played)):
                figures = self._update()
        return {**figures, "training_success": float(np.mean(self.progress.recent))}

    def _update(self) -> dict[str, float]:
        episodes = self.memory.sample(
            self.run.batch_episodes, self.rng, self.run.demonstrations_per_batch
        )
        size = self.learner.actor.config.observation_size
        figures = self.learner.update(collate(episodes, size, self.rng, self.run.augmentation))
        self.progress.updates += 1
        return figures

    def _evaluate(self, collector: Collector) -> SuccessRate:
        """Success of the policy's mean on the selection scenes; keeps the best policy."""
        seeds = seeds_from(SELECTION_SEED, self.run.evaluation_episodes)
        played = collector.play(
            Play(self.learner.policy(), seeds, stochastic=False, commented=False)
        )
        successes = sum(outcome.success for _, outcome in played)
        rate = SuccessRate(successes, len(played))
        LOGGER.info("after %d rounds: %s", self.progress.rounds, rate)
        is_best = successes > self.progress.best_successes
        self.progress.best_successes = max(successes, self.progress.best_successes)
        name = self._save(rate)
        if is_best:
            _point(self.folder / "checkpoints" / "best", name)
        lengths = [len(episode) for episode, outcome in played if outcome.success]
        self._append_row(rate, float(np.mean(lengths)) if lengths else float("nan"))
        return rate

    def _append_row(self, rate: SuccessRate, mean_length: float) -> None:
        path = self.folder / "progress.csv"
        row = {
            "rounds": self.progress.rounds,
            "updates": self.progress.updates,
            "environment_steps": self.progress.environment_steps,
            "seconds": round(self.progress.seconds, 1),
            "successes": rate.successes,
            "episodes": rate.episodes,
            "mean_length": round(mean_length, 2),
        }
        is_new = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(row))
            if is_new:
                writer.writeheader()
            writer.writerow(row)

    def _first_seed(self) -> int:
        return self.run.seed * SEEDS_PER_RUN

    def _save(self, rate: SuccessRate) -> str:
        """Write a checkpoint folder, whole or not at all; returns its name."""
        name = f"round_{self.progress.rounds:06d}"
        actor = self.learner.actor
        contract = PolicyContract(
            task=self.run.task,
            group=actor.config.group,
            network=actor.config.to_mapping(),
            provenance=Provenance(
                code_version=code_version(),
                agent=self.run.agent,
                preset=self.run.preset.value,
                seed=self.run.seed,
                environment_steps=self.progress.environment_steps,
                gradient_steps=self.progress.updates,
                evaluation_successes=rate.successes,
                evaluation_episodes=rate.episodes,
            ),
        )
        extra = {
            "run": self.run.to_mapping(),
            "progress": vars(self.progress),
            "learner": self.learner.state(),
            "rng": self.rng.bit_generator.state,
            "episodes_added": self.memory.n_added,
        }
        tensors = {**self.learner.tensors(), "torch_rng": torch.get_rng_state()}
        partial = self.folder / "checkpoints" / f".{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        save_checkpoint(partial, contract, actor, self.learner.critic, tensors, extra)
        final = partial.with_name(name)
        shutil.rmtree(final, ignore_errors=True)
        os.replace(partial, final)
        return name

    def _restore(self) -> None:
        checkpoint = newest_checkpoint(self.folder)
        extra = checkpoint.extra
        if extra["run"] != self.run.to_mapping():
            raise CheckpointError(f"{self.folder} was written by a run of another configuration")
        self.learner.restore(checkpoint.tensors, extra["learner"])
        torch.set_rng_state(checkpoint.tensors["torch_rng"])
        self.rng.bit_generator.state = extra["rng"]
        self.progress = Progress(**extra["progress"])
        self.memory.restore(int(extra["episodes_added"]))


def newest_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint of a run folder with the most rounds."""
    found = sorted((folder / "checkpoints").glob("round_*"))
    if not found:
        raise CheckpointError(
            f"{folder} has no checkpoint yet; remove the folder and start the run again"
        )
    return load_checkpoint(found[-1])


def make_learner(run: RobotRun) -> Learner:
    """Networks and learning method of a run."""
    network = reference_config(run.group, initial_state=run.initial_state)
    actor, _ = build_agent(run.kind.combination, network)
    planned = run.warm_up_updates + run.rounds * run.updates_per_round
    return ImitationLearner(actor, run.imitation, planned)


def _claim_folder(run: RobotRun, folder: Path, resume: bool) -> None:
    """Create the folder, or check that it belongs to this very run."""
    path = folder / "config.json"
    wanted = run.to_mapping()
    if resume:
        if not path.is_file():
            raise RunFolderError(f"{folder} holds no run; start it without --resume")
        found = json.loads(path.read_text(encoding="utf-8"))
        for name in sorted(found.keys() | wanted.keys()):
            if found.get(name) != wanted.get(name):
                raise RunFolderError(
                    f"{folder} belongs to a run with {name} = {found.get(name)!r}, "
                    f"not {wanted.get(name)!r}; choose another folder or the same settings"
                )
        return
    if path.exists():
        raise RunFolderError(f"{folder} already holds a run; continue it with --resume")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")


def _point(link: Path, name: str) -> None:
    """Make a link to a neighbouring folder, replacing the old one at once."""
    fresh = link.with_name(f".{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(name)
    os.replace(fresh, link)
