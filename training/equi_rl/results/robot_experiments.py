# SPDX-License-Identifier: MIT
"""Experiments on robot tasks as data: reward and controls, agents, ablations, choices of `fast`.

Order is priority: seed by seed, so that a sweep that is stopped early has one seed of everything
before it has two of anything.
"""

from __future__ import annotations

from equi_rl.envs import TASKS

SEEDS = (0, 1)
ROUNDS = 20
"""Rounds of a run: 80 episodes of its own and 400 updates of SAC after pretraining."""
EVALUATE_EVERY = 5
STUDIED_TASK = "block_picking"
"""Where choices and ablations are tried."""
COMPARED_AGENTS = ("equi-rsac", "rsac", "equi-cnn-rsac", "rad-crop-rsac", "drq-shift-rsac")

FAST_CHOICES: dict[str, tuple[str, ...]] = {
    "as_it_is": (),
    "values_as_strong_as_demonstrations": ("--sac.demonstration-weight", "1"),
    "no_own_successes": ("--imitate-successes", "False"),
    "newest_weights_play": ("--sac.policy-ema", "1"),
    "one_step_targets": ("--sac.td-lambda", "0", "--sac.discount", "0.9"),
    "slow_warm_start": ("--imitation.learning-rate", "1e-3"),
    "no_warm_start": (
        *("--imitation.updates", "0", "--imitation.log-std", "None"),
        *("--sac.critic-warmup-updates", "0"),
    ),
    "no_demonstration_loss": (
        # The actor follows no value in its first 100 updates, with the loss or without.
        *("--sac.demonstration-weight", "0"),
        *("--sac.critic-warmup-updates", "0", "--sac.actor-frozen-updates", "100"),
    ),
    "wide_start": ("--imitation.log-std", "None"),
    "critic_at_once": ("--sac.critic-warmup-updates", "0"),
    "separate_encoders": ("--sac.encoder", "separate"),
}
"""What `fast` changes beside the paper's recipe, each taken back alone: flags of `equi-train`."""

ABLATIONS: dict[str, tuple[str, ...]] = {
    "c8": ("--group", "C8"),
    "no_rotation": ("--rotate", "False"),
    "demonstrations_40": ("--demonstrations", "40"),
    "demonstrations_20": ("--demonstrations", "20"),
}

REWARD_CONTROLS: dict[str, tuple[str, ...]] = {
    "own_successes": ("--asymmetric.teacher", "successes"),
    "zero_reward": ("--asymmetric.reward-scale", "0"),
}
"""The preset `reward` without what it claims: no critic, or a critic that sees no reward."""
CONTROLLED_TASKS = ("block_pushing", "drawer_opening")
"""Where imitation alone leaves room."""


NamedRun = tuple[str, tuple[str, ...]]
"""Name of a run below its sweep's folder, and the arguments of ``equi-train`` that make it."""


def fast_choices() -> list[NamedRun]:
    """The preset `fast` as it is, and with each of its choices taken back."""
    return [
        _job(STUDIED_TASK, "equi-rsac", seed, choice, changes)
        for seed in SEEDS
        for choice, changes in FAST_CHOICES.items()
    ]


def reward_runs() -> list[NamedRun]:
    """The preset `reward` on every task, and its controls where imitation leaves room."""
    runs: list[NamedRun] = []
    for seed in SEEDS:
        for task in TASKS:
            variants = {"as_it_is": (), **(REWARD_CONTROLS if task in CONTROLLED_TASKS else {})}
            for name, changes in variants.items():
                command = ("robot", "--preset", "reward", "--task", task, "--seed", str(seed))
                runs.append((f"{task}/equi-rsac/{name}/seed-{seed}", (*command, *changes)))
    return runs


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
        _job(STUDIED_TASK, "equi-rsac", seed, name, changes)
        for seed in SEEDS
        for name, changes in ABLATIONS.items()
    ]


def _job(task: str, agent: str, seed: int, variant: str, changes: tuple[str, ...] = ()) -> NamedRun:
    command = (
        *("robot", "--preset", "fast", "--task", task, "--agent", agent),
        *("--seed", str(seed), "--rounds", str(ROUNDS)),
        *("--evaluate-every", str(EVALUATE_EVERY), *changes),
    )
    return f"{task}/{agent}/{variant}/seed-{seed}", command
