# SPDX-License-Identifier: MIT
"""The command line of the evaluator that a launch starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from equi_bringup.arguments import ArgumentError

_WAIT_S = 600
"""Longest wait for the nodes to come up [s]; the lifecycle manager gives up before that."""


@dataclass(frozen=True)
class Evaluation:
    """Which episodes a launch runs, and what is kept of them."""

    episodes: int
    seed: int
    task: str
    cell: str
    driven_by: str
    model: Path
    record: bool
    balanced: bool
    """Half movable-first, half immovable-first episodes."""
    output: str
    """Folder of the results; empty: named after task and time, where the launch was started."""

    def arguments(self, simulated: bool) -> list[str]:
        """Words for `evaluate`.

        Raises:
            ArgumentError: on a robot: a launch hands no keyboard on to its processes, and there an
                operator has to answer.
        """
        words = ["--episodes", str(self.episodes), "--task", self.task, "--cell", self.cell]
        words += ["--model", str(self.model)]
        if not simulated:
            raise ArgumentError(
                f"episodes:={self.episodes} works in the simulated cell only: here an operator "
                "arranges the scenes and gives the labels. Leave it out, and run beside this "
                f"launch: ros2 run equi_evaluation evaluate {' '.join(words)}"
            )
        words += ["--seed", str(self.seed), "--driven-by", self.driven_by, "--ground-truth"]
        words += ["--wait-s", str(_WAIT_S)]
        words += ["--record"] if self.record else []
        words += [] if self.balanced else ["--any-order"]
        return [*words, "--output", self.output] if self.output else words
