# SPDX-License-Identifier: MIT
"""`equi-bench scale`: speed of players and learner, and what a cluster would make of it.

Measures environment steps/s of 1 to N players (processes of this machine, or Ray actors), seconds
and bytes of a round, the size of the weights, and seconds of an update; then predicts by
`equi_rl.bench.cost_model` how long the paper's sweep of five agents, four tasks and four seeds
takes on 2 to 256 cores. Past the cores of this machine that is arithmetic, not a measurement.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pickle
import statistics
import time
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from equi_rl.bench.cost_model import (
    Parts,
    best_players,
    players_at_the_learners_limit,
    run_s,
    sweep_s,
    work_of,
)
from equi_rl.bench.train_step import random_episode
from equi_rl.bench.update import FULL_LENGTHS
from equi_rl.data.collate import collate
from equi_rl.data.replay_buffer import EpisodeReplayBuffer
from equi_rl.envs import TASKS
from equi_rl.experts import ExpertConfig
from equi_rl.training.collector import Collector, CollectorConfig, Play, Players, PlayersOn
from equi_rl.training.config import Preset, RobotRun
from equi_rl.training.malloc import keep_freed_memory
from equi_rl.training.presets import robot_run
from equi_rl.training.trainer import make_learner

CORES = (2, 16, 64, 256)
GRID_AGENTS = ("equi-rsac", "rsac", "equi-cnn-rsac", "rad-crop-rsac", "drq-shift-rsac")
GRID_SEEDS = 4
_WARM_UP_UPDATES = 2


def run(options: list[str]) -> dict[str, object]:
    """Entry point of the benchmark."""
    parsed = _parse(options)
    keep_freed_memory()
    torch.set_num_threads(1)
    console = Console(stderr=True)
    policy = make_learner(robot_run("block_picking", Preset.PAPER)).policy()
    rows = [_players(count, policy, parsed) for count in parsed.players]
    updates = {
        preset.value: _update_s(robot_run("block_picking", preset), parsed.updates)
        for preset in Preset
    }
    one = rows[0]
    parts = Parts(
        update_s=updates["paper"],
        steps_per_s=one["steps_per_s"] / one["players"],
        round_s=one["round_overhead_s"],
        start_s=one["start_s"],
    )
    grid = [robot_run(task, Preset.PAPER) for task in TASKS] * len(GRID_AGENTS) * GRID_SEEDS
    predicted = _predict(grid, parts)
    limits = {
        preset.value: round(
            players_at_the_learners_limit(
                work_of(robot_run("block_picking", preset)),
                Parts(updates[preset.value], parts.steps_per_s, 0.0, 0.0),
            ),
            2,
        )
        for preset in Preset
    }
    _print(console, rows, updates, predicted, limits)
    return {
        "players": rows,
        "update_s": {name: round(seconds, 4) for name, seconds in updates.items()},
        "weights_bytes": len(pickle.dumps(policy, protocol=pickle.HIGHEST_PROTOCOL)),
        "predicted": predicted,
        "players_at_the_learners_limit": limits,
        "cores": os.cpu_count(),
        "load_1_min": round(os.getloadavg()[0], 2),
    }


def _players(count: int, policy: Any, parsed: argparse.Namespace) -> dict[str, Any]:
    """Steps per second of so many players, and what a round costs beside them."""
    config = CollectorConfig("block_picking", ExpertConfig())
    on = PlayersOn.RAY if parsed.on == "ray" else PlayersOn.LOCAL
    seeds = tuple(range(10_000, 10_000 + parsed.episodes))
    began = time.perf_counter()
    with Collector(config, Players(count, on, parsed.address)) as collector:
        # As many as there are players: each has compiled and loaded what it needs.
        collector.play(Play(policy, seeds[:count], stochastic=True, label_with_expert=False))
        start_s = time.perf_counter() - began
        before = sum(player.bytes_received for player in collector.players)
        began = time.perf_counter()
        played = collector.play(Play(policy, seeds, stochastic=True, label_with_expert=False))
        seconds = time.perf_counter() - began
        received = sum(player.bytes_received for player in collector.players) - before
        sent = [player.bytes_sent for player in collector.players]
        empty = []
        for _ in range(5):
            began = time.perf_counter()
            collector.play(Play(policy, (), stochastic=True, label_with_expert=False))
            empty.append(time.perf_counter() - began)
    steps = sum(len(episode) for episode, _ in played)
    return {
        "players": count,
        "on": parsed.on,
        "steps_per_s": round(steps / seconds, 1),
        "episodes": len(played),
        "seconds": round(seconds, 2),
        "start_s": round(start_s, 2),
        "round_overhead_s": round(statistics.median(empty), 5),
        "bytes_out_per_player_and_round": round(max(sent) / 2),
        "bytes_in_per_episode": round(received / len(played)),
    }


def _update_s(run: RobotRun, repeats: int) -> float:
    """Seconds of one update on whole episodes, from sampling to the moved target; one thread."""
    learned = dataclasses.replace(
        run,
        # What most of the run does: pretraining is over, and the actor learns.
        imitation=dataclasses.replace(
            run.imitation, updates=0 if run.preset is not Preset.SHIP else run.imitation.updates
        ),
        asymmetric=dataclasses.replace(run.asymmetric, actor_frozen_updates=0),
    )
    learner, rng = make_learner(learned), np.random.default_rng(0)
    replay_buffer = EpisodeReplayBuffer(run.replay_capacity)
    for length in FULL_LENGTHS[: run.batch_episodes]:
        replay_buffer.add(random_episode(length, rng))
    learner.attach(replay_buffer)
    seconds = []
    for _ in range(_WARM_UP_UPDATES + repeats):
        began = time.perf_counter()
        episodes = replay_buffer.sample(run.batch_episodes, rng)
        size_px = learner.actor.config.observation_size
        learner.update(collate(episodes, size_px, rng, run.augmentation))
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[_WARM_UP_UPDATES:])


def _predict(grid: list[RobotRun], parts: Parts) -> list[dict[str, Any]]:
    works = [work_of(run) for run in grid]
    same = [parts] * len(works)
    rows = []
    for cores in CORES:
        players = best_players(works, same, cores)
        rows.append(
            {
                "cores": cores,
                "players_per_run": players,
                "runs_at_a_time": min(len(works), max(1, cores // (1 + players))),
                "longest_run_h": round(max(run_s(w, parts, players) for w in works) / 3600, 2),
                "sweep_h": round(sweep_s(works, same, cores, players) / 3600, 1),
            }
        )
    return rows


def _print(
    console: Console,
    rows: list[dict[str, Any]],
    updates: dict[str, float],
    predicted: list[dict[str, Any]],
    limits: dict[str, float],
) -> None:
    for title, entries in (("measured", rows), ("predicted: the paper's 80 runs", predicted)):
        table = Table(title=title)
        for name in entries[0]:
            table.add_column(name.replace("_", " "), justify="right")
        for entry in entries:
            table.add_row(*(str(value) for value in entry.values()))
        console.print(table)
    for name, seconds in updates.items():
        console.print(f"one update, preset {name}: {seconds:.3f} s on one thread")
    for name, limit in limits.items():
        console.print(f"preset {name}: more than {limit:g} players wait for the learner")


def _parse(options: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="equi-bench scale",
        description=__doc__,
        epilog="Example: equi-bench scale --players 1 2 --episodes 20",
    )
    parser.add_argument("--players", type=int, nargs="+", default=[1, 2], help="how many at a time")
    parser.add_argument("--episodes", type=int, default=16, help="episodes played by each number")
    parser.add_argument("--updates", type=int, default=3, help="timed updates of each preset")
    parser.add_argument("--on", choices=["local", "ray"], default="local", help="where players are")
    parser.add_argument("--address", default="auto", help="with ray: of the cluster")
    parsed = parser.parse_args(options)
    for name in ("episodes", "updates"):
        if getattr(parsed, name) < 1:
            parser.error(f"--{name} {getattr(parsed, name)}: must be at least 1")
    if min(parsed.players) < 1:
        parser.error(f"--players {min(parsed.players)}: must be at least 1")
    return parsed
