# SPDX-License-Identifier: MIT
"""`equi-bench env`: how many environment steps per second, and where the time goes.

Episodes are played by the experts, as in the reference numbers: half of them try the immovable
object first. Everything runs in one thread of one process.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from equi_rl.envs import TASKS, make_env
from equi_rl.experts import make_expert
from equi_rl.sim.physics_config import TimeSplit
from equi_rl.sim.world import World

REFERENCE_STEPS_PER_S = {
    "block_picking": 19.0,
    "block_pulling": 15.0,
    "block_pushing": 15.0,
    "drawer_opening": 10.0,
}
"""The authors' PyBullet environments with resets and depth image, on one core of a like machine. It
was another day's measurement, so the ratio is a guide."""


@dataclass(frozen=True)
class EnvSpeed:
    """Measured on one task."""

    episodes: int
    steps: int
    successes: int
    steps_per_s: float
    steps_per_s_with_resets: float
    physics_steps_per_step: float
    raw_physics_us: float
    """One PyBullet step of the same world at rest [us]."""
    inverse_kinematics_ms: float
    """Per environment step, like the next three [ms]."""
    physics_ms: float
    rendering_ms: float
    rest_ms: float
    reset_ms: float
    """Per reset [ms]."""


def measure(task: str, episodes: int, seed: int) -> EnvSpeed:
    """Play expert episodes and time them."""
    env = make_env(task)
    expert = make_expert(task)
    env.reset(seed=seed)
    env.step(np.zeros(5))  # loads or compiles what is compiled
    raw_us = _raw_physics_us(env.world)
    total = TimeSplit()
    steps = successes = 0
    step_s = reset_s = 0.0
    for episode in range(episodes):
        began = time.perf_counter()
        env.reset(seed=seed + episode)
        reset_s += time.perf_counter() - began
        env.world.spent.clear()
        # Either object is movable with equal chance, so this tries both kinds first equally often.
        memory = expert.start_with(env.state(), target=0)
        over = False
        while not over:
            action, memory = expert.act(env.state(), memory)
            began = time.perf_counter()
            _, _, terminated, truncated, info = env.step(action)
            step_s += time.perf_counter() - began
            steps += 1
            over = terminated or truncated
        total.add(env.world.spent)
        successes += bool(info["success"])
    env.close()
    per_step_ms = 1e3 / steps
    accounted_s = total.kinematics_s + total.physics_s + total.rendering_s
    return EnvSpeed(
        episodes=episodes,
        steps=steps,
        successes=successes,
        steps_per_s=steps / step_s,
        steps_per_s_with_resets=steps / (step_s + reset_s),
        physics_steps_per_step=total.physics_steps / steps,
        raw_physics_us=raw_us,
        inverse_kinematics_ms=total.kinematics_s * per_step_ms,
        physics_ms=total.physics_s * per_step_ms,
        rendering_ms=total.rendering_s * per_step_ms,
        rest_ms=(step_s - accounted_s) * per_step_ms,
        reset_ms=reset_s * 1e3 / episodes,
    )


def run(options: list[str]) -> dict[str, object]:
    """Entry point of `equi-bench env`."""
    parser = argparse.ArgumentParser(
        prog="equi-bench env",
        description="Environment steps per second on one core, played by the experts. "
        "Example: equi-bench env --episodes 100",
    )
    parser.add_argument("--episodes", type=int, default=60, help="per task (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="first episode's seed (default 0)")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    arguments = parser.parse_args(options)
    if arguments.episodes < 1:
        parser.error(f"--episodes {arguments.episodes} must be at least 1")
    numbers = {}
    with Console(stderr=True).status("starting") as status:
        for task in arguments.tasks:
            status.update(f"{task}: {arguments.episodes} episodes")
            numbers[task] = measure(task, arguments.episodes, arguments.seed)
    _print_table(numbers)
    return {
        "steps_per_s": {task: round(f.steps_per_s, 1) for task, f in numbers.items()},
        "steps_per_s_with_resets": {
            task: round(f.steps_per_s_with_resets, 1) for task, f in numbers.items()
        },
        "details": {
            task: {name: round(value, 4) for name, value in asdict(f).items()}
            for task, f in numbers.items()
        },
    }


def _raw_physics_us(world: World, steps: int = 500) -> float:
    """Best of five runs of bare PyBullet steps of the world as it stands [us per step]."""
    best_s = float("inf")
    for _ in range(5):
        before = world.spent.physics_s
        world.step_physics(steps * world.config.step_s)
        best_s = min(best_s, world.spent.physics_s - before)
    return best_s / steps * 1e6


def _print_table(numbers: dict[str, EnvSpeed]) -> None:
    speed = Table(title="environment steps per second, one core, depth image included")
    split = Table(title="where the time goes: ms per environment step")
    for table, headings in (
        (speed, ("task", "steps/s", "with resets", "reference", "ratio", "success")),
        (split, ("task", "IK", "physics", "image", "rest", "reset", "substeps", "raw us")),
    ):
        for heading in headings:
            is_task = heading == "task"
            table.add_column(heading, justify="left" if is_task else "right", no_wrap=is_task)
    for task, f in numbers.items():
        reference = REFERENCE_STEPS_PER_S[task]
        speed.add_row(
            task,
            f"{f.steps_per_s:.0f}",
            f"{f.steps_per_s_with_resets:.0f}",
            f"{reference:.0f}",
            f"{f.steps_per_s_with_resets / reference:.1f} x",
            f"{f.successes}/{f.episodes}",
        )
        split.add_row(
            task,
            f"{f.inverse_kinematics_ms:.2f}",
            f"{f.physics_ms:.2f}",
            f"{f.rendering_ms:.2f}",
            f"{f.rest_ms:.2f}",
            f"{f.reset_ms:.1f}",
            f"{f.physics_steps_per_step:.0f}",
            f"{f.raw_physics_us:.0f}",
        )
    console = Console()
    console.print(speed)
    console.print(split)
    console.print(
        "reset: ms per reset; substeps: physics steps per environment step; "
        "raw us: one bare PyBullet step"
    )
