# SPDX-License-Identifier: MIT
"""The checkpoints of a run folder: one folder per evaluation, and a link to the best one.

checkpoints/round_000120/   everything needed to resume, with the evaluation of its policy
checkpoints/round_000130_resume/   the same without an evaluation; only the newest is kept
checkpoints/best            link to the one with the best evaluation so far
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from equi_core.contract import PolicyContract
from equi_rl.agents.learner import Learner
from equi_rl.nets.checkpoint import Checkpoint, load_checkpoint, save_checkpoint

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
        learner: Learner,
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
            save_checkpoint(partial, contract, learner.actor, learner.critic, tensors, extra)
        except OSError:
            shutil.rmtree(partial, ignore_errors=True)  # a full disk: give the room back
            raise
        shutil.rmtree(final, ignore_errors=True)
        os.replace(partial, final)
        for older in self._folder.glob(f"round_*{_UNEVALUATED}"):
            if older != final:
                shutil.rmtree(older)

    def keep_best(self, rounds: int, successes: int) -> None:
        """Let `best` point to the checkpoint of a round if it beats the one pointed to so far."""
        if self.best.exists():
            so_far = load_checkpoint(self.best).contract.provenance.evaluation_successes
            if successes <= so_far:
                return
        _point(self.best, _name(rounds))


def _name(rounds: int) -> str:
    return f"round_{rounds:06d}"


def _point(link: Path, name: str) -> None:
    """Make a link to a neighbouring folder, replacing the old one at once."""
    fresh = link.with_name(f".{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(name)
    os.replace(fresh, link)
