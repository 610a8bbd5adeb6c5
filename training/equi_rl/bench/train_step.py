# SPDX-License-Identifier: MIT
"""`equi-bench train-step`: one complete training step, from sampling to the moved target.

A step samples whole episodes, rotates each by its own angle, packs them and updates critic, actor,
temperature and target. Measured for the preset `paper` (an image encoder each for actor and critic)
and with one that they share (`--sac.encoder both`), on the reference's batch of 32 episodes x 50
steps and on 32 episodes as long as expert demonstrations. All alternate in one process; numbers are
medians. With `--device cuda` the same on a GPU; the last line then says all that is worth sending
to somebody. With `--beside 2` two other processes compute meanwhile, as on a shared machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from equi_rl.agents.sac import SacUpdate
from equi_rl.agents.sac_settings import Encoder
from equi_rl.agents.stage_timer import StageTimer
from equi_rl.bench.neighbours import busy_neighbours
from equi_rl.bench.update import DEMO_LENGTHS, FULL_LENGTHS
from equi_rl.data.collate import collate
from equi_rl.data.device import (
    HOST,
    Device,
    DeviceError,
    choose_device,
    describe_device,
    synchronise,
)
from equi_rl.data.episode import Episode
from equi_rl.data.replay_buffer import EpisodeReplayBuffer
from equi_rl.envs.privileged_state import STATE_SIZE
from equi_rl.nets.agent import build_agent, on_device
from equi_rl.nets.config import reference_config
from equi_rl.training.config import Preset, RobotRun
from equi_rl.training.malloc import keep_freed_memory
from equi_rl.training.presets import robot_run

REFERENCE_FULL_BATCH_S = (7.5, 11.0)
"""The authors' update on the full batch, on two cores of a like machine on another day: the ratio
is a guide."""

WARM_UP_STEPS = 4
"""Untimed, until kernels are compiled and malloc holds as much memory as in a trainer."""


class TrainStep:
    """Replay buffer, networks and update of one preset."""

    def __init__(
        self, run: RobotRun, lengths: tuple[int, ...], device: torch.device = HOST
    ) -> None:
        torch.manual_seed(0)
        self.device = device
        self.rng = np.random.default_rng(0)
        self.run = run
        built_actor, built_critic = build_agent(run.kind.combination, reference_config(run.group))
        actor, critic = on_device(built_actor, device), on_device(built_critic, device)
        self.update = SacUpdate(actor, critic, run.sac)
        self.replay_buffer = EpisodeReplayBuffer(run.replay_capacity)
        for length in lengths:
            self.replay_buffer.add(random_episode(length, self.rng))
        self.batch_episodes = len(lengths)
        self.timer = StageTimer()
        self.seconds: list[float] = []

    def __call__(self) -> None:
        """One timed step."""
        started = time.perf_counter()
        with self.timer.stage("sample"):
            episodes = self.replay_buffer.sample(self.batch_episodes, self.rng)
        with self.timer.stage("unpack, rotate and pack"):
            size_px = self.update.networks.actor.config.observation_size
            batch = collate(episodes, size_px, self.rng, self.run.augmentation, self.device)
        self.update.step(batch.episodes, timer=self.timer, expert_actions=batch.expert_actions)
        synchronise(self.device)
        self.seconds.append(time.perf_counter() - started)

    @property
    def median_s(self) -> float:
        """Median time of a step [s]."""
        return statistics.median(self.seconds)

    def split(self) -> dict[str, float]:
        """Mean time per part of a step [s]."""
        return {
            name: round(total / len(self.seconds), 4) for name, total in self.timer.seconds.items()
        }


def run(options: list[str]) -> dict[str, object]:
    """Entry point of the benchmark."""
    parser = argparse.ArgumentParser(
        prog="equi-bench train-step",
        description=__doc__,
        epilog="Example: equi-bench train-step --repeats 5",
    )
    parser.add_argument("--repeats", type=int, default=5, help="timed steps of each kind")
    parser.add_argument("--threads", type=int, default=0, help="threads of torch; 0: all cores")
    parser.add_argument(
        "--beside", type=int, default=0, help="other processes that compute meanwhile"
    )
    parser.add_argument(
        "--device", default="cpu", choices=[item.value for item in Device], help="where it learns"
    )
    parsed = parser.parse_args(options)
    if parsed.beside < 0:
        parser.error(f"--beside is {parsed.beside}; give 0 or more processes")
    try:
        device = choose_device(parsed.device)
    except DeviceError as error:
        parser.error(str(error))
    keep_freed_memory()
    if parsed.threads:
        torch.set_num_threads(parsed.threads)
    runs = {
        "shared": robot_run(
            "block_picking",
            Preset.PAPER,
            sac={"encoder": Encoder.BOTH, "actor_uses_updated_critic": False},
        ),
        "paper": robot_run("block_picking", Preset.PAPER),
    }
    steps = {
        (kind, name): TrainStep(run, lengths, device)
        for kind, run in runs.items()
        for name, lengths in (("full", FULL_LENGTHS), ("demo", DEMO_LENGTHS))
    }
    for step in steps.values():
        for _ in range(WARM_UP_STEPS):
            step()
        step.seconds.clear()
        step.timer.seconds.clear()
    with (
        busy_neighbours(parsed.beside),
        Progress(transient=True, console=Console(stderr=True)) as progress,
    ):
        for _ in progress.track(range(parsed.repeats), description="steps"):
            for step in steps.values():
                step()
    full, paper = steps["shared", "full"], steps["paper", "full"]
    _print(steps)
    slow, slowest = REFERENCE_FULL_BATCH_S
    return {
        "full_batch_s": round(full.median_s, 4),
        "demo_batch_s": round(steps["shared", "demo"].median_s, 4),
        "paper_full_batch_s": round(paper.median_s, 4),
        "paper_demo_batch_s": round(steps["paper", "demo"].median_s, 4),
        "speedup_vs_reference": [round(s / full.median_s, 1) for s in (slow, slowest)],
        "paper_speedup_vs_reference": [round(s / paper.median_s, 1) for s in (slow, slowest)],
        "full_batch_split_s": full.split(),
        "paper_full_batch_split_s": paper.split(),
        "device": device.type,
        "hardware": describe_device(device),
        "torch": torch.__version__,
        "convolution_dtype": str(full.update.networks.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "waiting_threads": os.environ.get("OMP_WAIT_POLICY", "").lower(),
        "beside": parsed.beside,
        "repeats": parsed.repeats,
    }


def random_episode(length: int, rng: np.random.Generator) -> Episode:
    """Random frames, states and actions: the time does not depend on what they show."""
    action = rng.uniform(-1, 1, (length, 5)).astype(np.float32)
    return Episode(
        depth=rng.integers(0, 3000, (length + 1, 84, 84), dtype=np.uint16),
        holding=rng.random(length + 1) < 0.2,
        requested_action=action,
        executed_action=action,
        reward=np.zeros(length, dtype=np.float32),
        terminated=True,
        expert_action=action,
        is_demonstration=True,
        privileged_state=rng.random((length + 1, STATE_SIZE), dtype=np.float32),
        privileged_frame_rad=np.zeros(length + 1, dtype=np.float32),
    )


def _print(steps: dict[tuple[str, str], TrainStep]) -> None:
    table = Table(title="one training step [s]")
    for heading in ("part", *(f"{kind}, {name}" for kind, name in steps)):
        table.add_column(heading)
    parts = list(dict.fromkeys(part for step in steps.values() for part in step.split()))
    for part in parts:
        cells = [step.split().get(part) for step in steps.values()]
        table.add_row(part, *("-" if cell is None else f"{cell:.3f}" for cell in cells))
    table.add_row("all (median)", *(f"{step.median_s:.3f}" for step in steps.values()))
    Console(stderr=True).print(table)
