# SPDX-License-Identifier: MIT
"""Experiments on robot tasks as data: reward and controls, agents, ablations.

Order is priority: seed by seed, so that a sweep that is stopped early has one seed of everything
before it has two of anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from equi_rl.envs import SHIPPED_TASKS
from equi_rl.training.config import Preset

SEEDS = (0, 1)
COMPARED_SEEDS: Mapping[str, tuple[int, ...]] = {
    "equi-rsac": (0, 1, 2),
    "equi-cnn-rsac": (0,),
    "rsac": (0, 1, 2),
    "rad-crop-rsac": (0,),
    "drq-shift-rsac": (0,),
}
"""Agents that are compared, and the seeds of each."""
SEARCHED_AGENTS = ("equi-rsac", "equi-cnn-rsac", "rsac")
"""One of each kind of network; RAD and DrQ have that of `rsac`."""
SEARCHED_TASKS, SEARCHED_RATES = ("block_picking", "block_pushing"), ("6e-3", "2e-3", "6e-4")
"""Learning rates of imitation that each of them is given, and where."""
ACTOR_RATE_AGENTS = ("equi-rsac", "rsac")
ACTOR_RATES = ("5e-4", "1e-3", "2e-3")
"""Learning rates of the actor while it learns from values; each of these agents is given all of
them, on both hard tasks."""

ABLATIONS: Mapping[str, tuple[str, ...]] = {
    "equivariant_actor_only": ("--agent", "equi-actor-rsac"),
    "equivariant_critic_only": ("--agent", "equi-critic-rsac"),
    "c8": ("--group", "C8"),
    "d4": ("--group", "D4"),
    "random_initial_state": ("--initial-state", "random"),
    "no_rotation": ("--rotate", "False"),
    "demonstrations_20": ("--demonstrations", "20"),
    "demonstrations_40": ("--demonstrations", "40"),
    "demonstrations_160": ("--demonstrations", "160"),
}

REWARD_CONTROLS: Mapping[str, tuple[str, ...]] = {
    "own_successes": ("--asymmetric.teacher", "successes"),
    "zero_reward": ("--asymmetric.reward-scale", "0"),
}
"""The preset `reward` without what it claims: no critic, or a critic that sees no reward."""
HARD_TASKS = ("block_pushing", "drawer_opening")
"""Where imitation alone leaves room, so that controls and ablations say something."""
ABLATED_ON_BOTH = ("equivariant_actor_only", "equivariant_critic_only")
"""Ablations on both of them, as in the paper's text; the others on the first one alone."""


NamedRun = tuple[str, tuple[str, ...]]
"""Name of a run below its sweep's folder, and the arguments of ``equi-train`` that make it."""


def reward_runs() -> list[NamedRun]:
    """The preset `reward` on every task, and its controls where imitation leaves room."""
    return [
        _run(task, "equi-rsac", seed, variant, changes)
        for seed in SEEDS
        for task in SHIPPED_TASKS
        for variant, changes in {
            "as_it_is": (),
            **(REWARD_CONTROLS if task in HARD_TASKS else {}),
        }.items()
    ]


def learning_rates() -> list[NamedRun]:
    """The same learning rates for every kind of network, equal effort for all.

    First those of imitation, then those of learning from values.
    """
    imitation_only = ("--rounds", "1", "--environment-steps", "0", "--evaluation-share", "None")
    imitation = [
        _run(
            *(task, agent, 0, f"rate-{rate}"),
            ("--imitation.learning-rate", rate, *imitation_only, "--evaluation-episodes", "200"),
        )
        for task in SEARCHED_TASKS
        for rate in SEARCHED_RATES
        for agent in SEARCHED_AGENTS
    ]
    values = [
        _run(
            *(task, agent, 0, f"actor-rate-{rate}"),
            ("--asymmetric.actor-learning-rate", rate),
            Preset.BRIEF,
        )
        for task in HARD_TASKS
        for rate in ACTOR_RATES
        for agent in ACTOR_RATE_AGENTS
    ]
    return imitation + values


def comparison() -> list[NamedRun]:
    """Every agent on every task with the paper's 80 demonstrations; imitation comes first in each.

    Where imitation leaves room, with the controls of the first agent. A brief run is not the
    beginning of a longer one: its learning rate falls sooner.
    """
    return [
        run
        for seed in sorted({seed for seeds in COMPARED_SEEDS.values() for seed in seeds})
        for task in SHIPPED_TASKS
        for run in (
            *(
                _run(task, agent, seed, "as_it_is", (), Preset.BRIEF)
                for agent, seeds in COMPARED_SEEDS.items()
                if seed in seeds
            ),
            *(
                _run(task, "equi-rsac", seed, name, changes, Preset.BRIEF)
                for name, changes in REWARD_CONTROLS.items()
                if task in HARD_TASKS
            ),
        )
    ]


def ablations() -> list[NamedRun]:
    """One thing changed at a time, on the tasks that the paper discusses."""
    return [
        _run(task, "equi-rsac", seed, name, changes, Preset.BRIEF)
        for seed in SEEDS
        for name, changes in ABLATIONS.items()
        for task in (HARD_TASKS if name in ABLATED_ON_BOTH else HARD_TASKS[:1])
    ]


def _run(
    task: str,
    agent: str,
    seed: int,
    variant: str,
    changes: tuple[str, ...],
    preset: Preset = Preset.REWARD,
) -> NamedRun:
    chosen = () if "--agent" in changes else ("--agent", agent)
    command = ("robot", "--preset", preset.value, "--task", task, *chosen, "--seed", str(seed))
    return f"{task}/{agent}/{variant}/seed-{seed}", (*command, *changes)
