# SPDX-License-Identifier: MIT
"""The checkpoints of a run folder: one folder per evaluation, and a link to the best one.

A checkpoint says how well its policy does, and to know that takes a while. So a `Snapshot` is taken
first; it is written when the evaluation is known, while the learner is already further.

checkpoints/round_000120/   everything needed to resume, with the evaluation of its policy
checkpoints/round_000130_resume/   the same without an evaluation; only the newest is kept
checkpoints/best            link to the one with the best evaluation so far
"""

from __future__ import annotations

import copy
import dataclasses
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from equi_core.contract import PolicyContract, Provenance
from equi_core.statistics import SuccessRate
from equi_rl.agents.learner import Learner
from equi_rl.data.replay_buffer import EpisodeReplayBuffer, delete_files
from equi_rl.nets.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from equi_rl.nets.networks import Actor, Critic
from equi_rl.training.code_version import code_version
from equi_rl.training.config import RobotRun
from equi_rl.training.progress import Progress

_UNEVALUATED = "_resume"


class RunCheckpoints:
    """Writes and finds the checkpoints of one run."""

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder / "checkpoints"
        self.best = self._folder / "best"

    def newest(self) -> Checkpoint | None:
        """The checkpoint with the most rounds; None before the first."""
        found = sorted(self._folder.glob("round_*"))
        return load_checkpoint(found[-1]) if found else None

    def save(
        self,
        rounds: int,
        contract: PolicyContract,
        actor: Actor,
        critic: Critic | None,
        tensors: Mapping[str, Tensor],
        extra: Mapping[str, Any],
        *,
        evaluated: bool = True,
    ) -> None:
        """Write the checkpoint of a round, whole or not at all."""
        final = self._folder / (_name(rounds) + ("" if evaluated else _UNEVALUATED))
        partial = final.with_name(f".{final.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        try:
            save_checkpoint(partial, contract, actor, critic, tensors, extra)
        except OSError:
            shutil.rmtree(partial, ignore_errors=True)  # a full disk: give the room back
            raise
        shutil.rmtree(final, ignore_errors=True)
        os.replace(partial, final)
        for older in self._folder.glob(f"round_*{_UNEVALUATED}"):
            if older != final:
                shutil.rmtree(older)

    def keep_best(self, rounds: int, successes: int) -> None:
        """Let `best` point to the checkpoint of a round if none before it had more successes.

        Of two with as many, the later one has learned from more episodes.
        """
        if self.best.exists():
            so_far = load_checkpoint(self.best).contract.provenance.evaluation_successes
            if successes < so_far:
                return
        _point(self.best, _name(rounds))


@dataclass(frozen=True)
class Snapshot:
    """One moment of a run."""

    run: RobotRun
    progress: Progress
    actor: Actor
    critic: Critic | None
    tensors: Mapping[str, Tensor]
    state: Mapping[str, Any]
    evicted: list[Path]
    """Files that no checkpoint from this one on needs."""

    @classmethod
    def take(
        cls,
        run: RobotRun,
        progress: Progress,
        learner: Learner,
        rng: np.random.Generator,
        replay_buffer: EpisodeReplayBuffer,
    ) -> Snapshot:
        """The moment that is now; nothing of it changes when the run goes on."""
        tensors = {name: tensor.clone() for name, tensor in learner.tensors().items()}
        return cls(
            run,
            copy.deepcopy(progress),
            copy.deepcopy(learner.actor),
            copy.deepcopy(learner.critic),
            {**tensors, "torch_rng": torch.get_rng_state()},
            {
                "learner": learner.state(),
                "rng": copy.deepcopy(rng.bit_generator.state),
                "episodes_added": replay_buffer.n_added,
            },
            replay_buffer.take_evicted(),
        )

    def write(self, checkpoints: RunCheckpoints, rate: SuccessRate | None) -> None:
        """Write it as the checkpoint of its round, with its evaluation if there is one."""
        checkpoints.save(
            self.progress.rounds,
            self._contract(rate or SuccessRate(0, 0)),
            self.actor,
            self.critic,
            self.tensors,
            {"progress": vars(self.progress), **self.state},
            evaluated=rate is not None,
        )
        delete_files(self.evicted)

    def _contract(self, rate: SuccessRate) -> PolicyContract:
        return dataclasses.replace(
            self.run.contract,
            group=self.actor.config.group,
            network=self.actor.config.to_mapping(),
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


def _name(rounds: int) -> str:
    return f"round_{rounds:06d}"


def _point(link: Path, name: str) -> None:
    """Make a link to a neighbouring folder, replacing the old one at once."""
    fresh = link.with_name(f".{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(name)
    os.replace(fresh, link)
