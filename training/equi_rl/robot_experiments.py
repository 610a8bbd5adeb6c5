"""Experiments on robot tasks as data: comparison of agents, ablations, and the choices of `fast`.

Order is priority: seed by seed, so that a grid that is stopped early has one seed of everything
before it has two of anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from equi_rl.envs import TASKS

SEEDS = (0, 1)
ROUNDS = 40
"""Rounds of a run: 160 episodes of its own and 800 updates of SAC after the warm start."""
STUDIED_TASK = "block_picking"
"""Where choices and ablations are tried."""
COMPARED_AGENTS = ("equi-rsac", "rsac", "equi-cnn-rsac", "rad-crop-rsac", "drq-shift-rsac")

FAST_CHOICES: dict[str, tuple[str, ...]] = {
    "as_it_is": (),
    "no_warm_start": (
        "warm_up_updates=0",
        "imitation.log_std=null",
        "sac.critic_first_updates=0",
    ),
    "no_demonstration_loss": ("sac.critic_first_updates=0", "sac.demonstration_weight=0"),
    "wide_start": ("imitation.log_std=null",),
    "critic_at_once": ("sac.critic_first_updates=0",),
    "separate_encoders": ("sac.encoder=separate",),
}
"""What `fast` changes beside the paper's recipe, each taken back alone."""

ABLATIONS: dict[str, tuple[str, ...]] = {
    "c8": ("--group", "C8"),
    "no_rotation": ("--no-rotate",),
    "demonstrations_40": ("--demonstrations", "40"),
    "demonstrations_20": ("--demonstrations", "20"),
}


NamedRun = tuple[str, tuple[str, ...]]
"""Name of a run below its grid's folder, and the arguments of ``equi-train`` that make it."""


def fast_choices() -> list[NamedRun]:
    """The preset `fast` as it is, and with each of its choices taken back."""
    return [
        _job(STUDIED_TASK, "equi-rsac", seed, choice, *_set(changes))
        for seed in SEEDS
        for choice, changes in FAST_CHOICES.items()
    ]


def comparison() -> list[NamedRun]:
    """Every agent on every task with the paper's 80 demonstrations."""
    return [
        _job(task, agent, seed, "as_it_is")
        for seed in SEEDS
        for task in TASKS
        for agent in COMPARED_AGENTS
    ]


def ablations() -> list[NamedRun]:
    """Another group, no rotation of sampled episodes, fewer demonstrations."""
    return [
        _job(STUDIED_TASK, "equi-rsac", seed, name, *arguments)
        for seed in SEEDS
        for name, arguments in ABLATIONS.items()
    ]


def _job(task: str, agent: str, seed: int, variant: str, *more: str) -> NamedRun:
    arguments = (
        *("robot", "--preset", "fast", "--task", task, "--agent", agent),
        *("--seed", str(seed), "--rounds", str(ROUNDS), *more),
    )
    return f"{task}/{agent}/{variant}/seed-{seed}", arguments


def _set(changes: tuple[str, ...]) -> Iterator[str]:
    return iter(("--set", *changes) if changes else ())
