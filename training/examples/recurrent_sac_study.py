# SPDX-License-Identifier: MIT
"""Recurrent SAC beside its feed-forward control on two small worlds, over several seeds.

    python training/examples/recurrent_sac_study.py --seeds 3 --out runs/recurrent_sac

Writes `curves.csv` (one row per evaluation, appended as it comes), `curves.png` and `table.md`.
A second call continues: runs whose last row is there are not trained again.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
import torch

import equi_rl.envs  # noqa: F401  registers the environments
from equi_rl.recurrent_sac.agent import RecurrentSac
from equi_rl.recurrent_sac.config import RecurrentSacConfig
from equi_rl.recurrent_sac.worlds import MIRRORED_CARFLAG, MIRRORED_PENDULUM

FIELDS = ("world", "agent", "seed", "steps", "mean_return", "successes", "episodes", "cpu_s")
EVALUATION_EPISODES = 20
CARFLAG = RecurrentSacConfig(
    encoder_channels=(32,),
    recurrent_channels=32,
    head_channels=(32, 32),
    initial_temperature=0.02,
    td_lambda=0.7,
    updates_per_step=0.5,
)
PENDULUM = RecurrentSacConfig(
    batch_episodes=8, sequence_steps=64, reward_scale=0.1, discount=0.97, updates_per_step=1.0
)
# world: (gymnasium id, settings, symmetry, steps, steps between evaluations)
WORLDS = {
    "carflag": ("equi/ContinuousCarFlag-v0", CARFLAG, MIRRORED_CARFLAG, 6_000, 500),
    "pendulum": ("equi/MaskedPendulum-v0", PENDULUM, MIRRORED_PENDULUM, 6_000, 500),
}
# A feed-forward agent that sees its previous action has one number of memory: it sees none.
AGENTS = {
    "recurrent, equivariant": {"memory": "lstm"},
    "recurrent, plain": {"memory": "lstm", "symmetry": None},
    "feed-forward, equivariant": {"memory": "none", "action_channels": 0},
}


def main() -> None:
    """Train what is missing, then draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each agent in each world")
    parser.add_argument("--out", type=Path, default=Path("runs/recurrent_sac"), help="folder")
    parser.add_argument("worlds", nargs="*", help=f"of {', '.join(WORLDS)}; none: all of them")
    parser.add_argument("--steps", type=int, default=0, help="of each run; 0: as the study has it")
    options = parser.parse_args()
    for name in options.worlds:
        if name not in WORLDS:
            parser.error(f"world '{name}' is unknown; known: {', '.join(WORLDS)}")
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    curves = options.out / "curves.csv"
    for seed in range(options.seeds):
        for world in options.worlds or WORLDS:
            for agent in AGENTS:
                run(world, agent, seed, curves, options.steps)
    rows = read(curves)
    (options.out / "table.md").write_text(table(rows), encoding="utf-8")
    draw(rows, options.out / "curves.png")
    sys.stdout.write(table(rows))


def run(world: str, name: str, seed: int, curves: Path, most_steps: int) -> None:
    """Train one agent and append its evaluations."""
    env_id, settings, symmetry, steps, every = WORLDS[world]
    steps = most_steps or steps
    done = [row for row in read(curves) if (row["world"], row["agent"]) == (world, name)]
    if any(int(row["seed"]) == seed and int(row["steps"]) >= steps for row in done):
        return
    changes = {"symmetry": symmetry, **AGENTS[name], "seed": seed}
    agent = RecurrentSac(gymnasium.make(env_id), dataclasses.replace(settings, **changes))
    start_s = time.process_time()
    rows = []
    while agent.steps < steps:
        agent.learn(min(every, steps - agent.steps))
        score = agent.evaluate(EVALUATION_EPISODES)
        cpu_s = round(time.process_time() - start_s)
        counts = (agent.steps, round(score.mean_return, 4), score.successes, EVALUATION_EPISODES)
        rows.append(dict(zip(FIELDS, (world, name, seed, *counts, cpu_s), strict=True)))
        sys.stdout.write(f"{world}, {name}, seed {seed}: {counts}, {cpu_s} s\n")
        sys.stdout.flush()
    is_new = not curves.exists()
    with curves.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def read(curves: Path) -> list[dict[str, str]]:
    """All evaluations so far."""
    if not curves.exists():
        return []
    with curves.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def last_rows(rows: list[dict[str, str]], world: str, agent: str) -> list[dict[str, str]]:
    """The last evaluation of each seed."""
    last = {row["seed"]: row for row in rows if (row["world"], row["agent"]) == (world, agent)}
    return list(last.values())


def table(rows: list[dict[str, str]]) -> str:
    """Markdown: the end of every run."""
    lines = [
        "| world | agent | seeds | last return, per seed | successes, all seeds | CPU s a run |",
        "|---|---|---|---|---|---|",
    ]
    for world in WORLDS:
        for agent in AGENTS:
            ends = last_rows(rows, world, agent)
            if not ends:
                continue
            returns = ", ".join(f"{float(row['mean_return']):.2f}" for row in ends)
            won = sum(int(row["successes"]) for row in ends)
            played = sum(int(row["episodes"]) for row in ends)
            cpu_s = np.mean([float(row["cpu_s"]) for row in ends])
            success = f"{won}/{played}" if world == "carflag" else "-"
            lines.append(
                f"| {world} | {agent} | {len(ends)} | {returns} | {success} | {cpu_s:.0f} |"
            )
    return "\n".join(lines) + "\n"


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Mean return over steps; every seed a thin line, their mean a thick one."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(WORLDS), figsize=(10, 4), constrained_layout=True)
    for axis, world in zip(axes, WORLDS, strict=True):
        for colour, agent in enumerate(AGENTS):
            seeds: dict[str, list[tuple[int, float]]] = {}
            for row in rows:
                if (row["world"], row["agent"]) == (world, agent):
                    point = int(row["steps"]), float(row["mean_return"])
                    seeds.setdefault(row["seed"], []).append(point)
            if not seeds:
                continue
            lines = [np.array(points) for points in seeds.values()]
            for line in lines:
                axis.plot(*line.T, color=f"C{colour}", linewidth=0.7, alpha=0.5)
            grid = np.linspace(0, max(line[-1, 0] for line in lines), 50)
            mean = np.mean([np.interp(grid, *line.T) for line in lines], axis=0)
            axis.plot(grid, mean, color=f"C{colour}", label=f"{agent} ({len(lines)} seeds)")
        axis.set(title=world, xlabel="environment steps", ylabel="mean return, 20 episodes")
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
