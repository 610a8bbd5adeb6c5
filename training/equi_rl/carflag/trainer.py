# SPDX-License-Identifier: MIT
"""Trains the learners of one CarFlag run: evaluated, logged, resumable to the bit."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from equi_rl.carflag.a2c import A2CLearners, Evaluation, UpdateLog
from equi_rl.carflag.run import CarFlagRun
from equi_rl.training.run_folder import RunFolder

_EVALUATION_STREAM = 1_000_003  # keeps evaluation's random numbers apart from any training seed


class Progress(NamedTuple):
    """What a progress display needs."""

    steps: int  # environment steps of each learner
    total_steps: int
    success: float  # latest evaluation, mean over learners; NaN before the first
    steps_per_s: float  # all learners together, this process


class _Time(NamedTuple):
    """Time of this process, evaluations included; CPU time tells its cost on a busy machine."""

    wall_s: float
    cpu_s: float

    @staticmethod
    def now() -> _Time:
        return _Time(time.monotonic(), time.process_time())

    def __sub__(self, other: _Time) -> _Time:
        return _Time(self.wall_s - other.wall_s, self.cpu_s - other.cpu_s)

    def __add__(self, other: _Time) -> _Time:  # type: ignore[override]
        return _Time(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)


class CarFlagTrainer:
    """One run; ``train`` starts it in a fresh folder, or with ``resume`` goes on with one."""

    def __init__(self, run: CarFlagRun, folder: Path) -> None:
        self.run = run
        self.folder = RunFolder(folder)
        self.learners = A2CLearners(
            run.world(),
            equivariant=run.is_equivariant,
            config=run.a2c,
            seeds=run.seeds,
            memory=run.memory(),
        )
        self._before = _Time(0.0, 0.0)  # spent in earlier processes
        self._logs: list[UpdateLog] = []  # since the last evaluation
        self._success = np.full(len(run.seeds), np.nan)

    def train(
        self, *, resume: bool = False, report: Callable[[Progress], None] | None = None
    ) -> dict[str, Any]:
        """Run to the end; returns the summary that is also written to the folder."""
        from torch.utils.tensorboard import SummaryWriter

        with self.folder.claim(self.run.to_json(), resume=resume):
            if self.folder.is_finished:
                return self.folder.read_summary()
            self._restore()
            steps_before = self.learners.steps
            started = _Time.now()
            writers = [
                SummaryWriter(
                    str(self.folder.tensorboard / f"seed{seed}"), purge_step=steps_before + 1
                )
                for seed in self.run.seeds
            ]
            try:
                while self.learners.steps < self.run.steps:
                    self._logs.append(self.learners.update())
                    spent = _Time.now() - started
                    taken = (self.learners.steps - steps_before) * len(self.run.seeds)
                    if self._is_evaluation_due():
                        self._evaluate(writers, self._before + spent, taken / spent.wall_s)
                    if report is not None:
                        mean = float(np.mean(self._success))
                        speed = taken / spent.wall_s
                        report(Progress(self.learners.steps, self.run.steps, mean, speed))
            finally:
                for writer in writers:
                    writer.close()
            summary = self._summary(self._before + (_Time.now() - started))
            self.folder.finish(summary)
        return summary

    def _is_evaluation_due(self) -> bool:
        now, every = self.learners.steps, self.run.evaluate_every
        before = now - self.run.a2c.steps_per_update
        return now // every > before // every or now >= self.run.steps

    def _evaluate(self, writers: list[Any], spent: _Time, steps_per_s: float) -> None:
        """Evaluate, write one row per learner, then a checkpoint."""
        steps = self.learners.steps
        result = self.learners.evaluate(
            self.run.evaluation_episodes, seed=_EVALUATION_STREAM + self.learners.updates
        )
        self._success = result.success
        rows = self._rows(result, round(spent.wall_s, 1))
        for writer, row in zip(writers, rows, strict=True):
            for name in (
                "success",
                "return",
                "length",
                "training_success",
                "entropy",
                "value_loss",
            ):
                writer.add_scalar(name, row[name], steps)
            writer.add_scalar("steps_per_s", steps_per_s, steps)
        self.folder.append_progress(rows)
        self._logs.clear()
        self._save(spent)

    def _rows(self, result: Evaluation, seconds: float) -> list[dict[str, Any]]:
        episodes = sum(log.episodes for log in self._logs)
        successes = sum(log.successes for log in self._logs)
        training_success = successes / np.maximum(episodes, 1)
        return [
            {
                "seed": seed,
                "steps": self.learners.steps,
                "success": round(float(result.success[i]), 4),
                "return": round(float(result.undiscounted_return[i]), 4),
                "length": round(float(result.length[i]), 2),
                "training_success": round(float(training_success[i]), 4),
                "entropy": round(float(np.mean([log.entropy[i] for log in self._logs])), 4),
                "value_loss": round(float(np.mean([log.value_loss[i] for log in self._logs])), 5),
                "seconds": seconds,
            }
            for i, seed in enumerate(self.run.seeds)
        ]

    def _save(self, spent: _Time) -> None:
        learners = self.learners
        self.folder.save_checkpoint(
            {
                "parameters": learners.parameters.numpy(),
                "mean_square": learners.mean_square.numpy(),
                **{name: part.numpy() for name, part in learners.state._asdict().items()},
                "observation": learners.observation,
                "success": self._success,
                **{f"envs.{name}": array for name, array in learners.envs.state().items()},
            },
            {
                "updates": learners.updates,
                "seconds": spent.wall_s,
                "cpu_seconds": spent.cpu_s,
                "action_generators": [_generator_state(g) for g in learners.action_generators],
                "env_generators": [_generator_state(g) for g in learners.envs.generators],
            },
        )

    def _restore(self) -> None:
        checkpoint = self.folder.load_checkpoint()
        learners = self.learners
        if checkpoint is not None:
            arrays, state = checkpoint
            learners.parameters = torch.from_numpy(arrays["parameters"])
            learners.mean_square = torch.from_numpy(arrays["mean_square"])
            learners.state = type(learners.state)(
                *(torch.from_numpy(arrays[name]) for name in learners.state._fields)
            )
            learners.observation = arrays["observation"]
            learners.envs.set_state(
                {name[5:]: array for name, array in arrays.items() if name.startswith("envs.")}
            )
            learners.updates = state["updates"]
            for generator, saved in zip(
                (*learners.action_generators, *learners.envs.generators),
                (*state["action_generators"], *state["env_generators"]),
                strict=True,
            ):
                generator.bit_generator.state = saved
            self._before = _Time(state["seconds"], state["cpu_seconds"])
            self._success = arrays["success"]
        self.folder.cut_progress("steps", learners.steps)

    def _summary(self, spent: _Time) -> dict[str, Any]:
        steps = self.learners.steps * len(self.run.seeds)
        return {
            "steps": self.learners.steps,
            "seconds": round(spent.wall_s, 1),
            "steps_per_s": round(steps / spent.wall_s, 1),
            "cpu_seconds": round(spent.cpu_s, 1),
            "steps_per_cpu_s": round(steps / spent.cpu_s, 1),
            "parameters": self.learners.policy.num_parameters,
            "success": {
                str(seed): float(rate)
                for seed, rate in zip(self.run.seeds, self._success, strict=True)
            },
        }


def _generator_state(generator: np.random.Generator) -> dict[str, Any]:
    """State of a numpy generator as plain JSON values."""
    state: dict[str, Any] = generator.bit_generator.state  # type: ignore[assignment]
    return state
