"""Experiments on robot tasks as data: comparison of agents, ablations, and the choices of `fast`.

Order is priority: seed by seed, so that a grid that is stopped early has one seed of everything
before it has two of anything.
"""

from __future__ import annotations

from equi_rl.envs import TASKS

SEEDS = (0, 1)
ROUNDS = 20
"""Rounds of a run: 80 episodes of its own and 400 updates of SAC after the warm start."""
EVALUATE_EVERY = 5
STUDIED_TASK = "block_picking"
"""Where choices and ablations are tried."""
COMPARED_AGENTS = ("equi-rsac", "rsac", "equi-cnn-rsac", "rad-crop-rsac", "drq-shift-rsac")

FAST_CHOICES: dict[str, tuple[str, ...]] = {
    "as_it_is": (),
    "values_as_strong_as_demonstrations": ("sac.demonstration_weight=1",),
    "no_own_successes": ("imitate_successes=false",),
    "newest_weights_play": ("sac.policy_rate=1",),
    "one_step_targets": ("sac.trace=0", "sac.discount=0.9"),
    "slow_warm_start": ("imitation.learning_rate=1e-3",),
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
        _job(STUDIED_TASK, "equi-rsac", seed, choice, changes=changes)
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
        _job(STUDIED_TASK, "equi-rsac", seed, name, arguments=arguments)
        for seed in SEEDS
        for name, arguments in ABLATIONS.items()
    ]


def _job(
    task: str,
    agent: str,
    seed: int,
    variant: str,
    changes: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (),
) -> NamedRun:
    command = (
        *("robot", "--preset", "fast", "--task", task, "--agent", agent),
        *("--seed", str(seed), "--rounds", str(ROUNDS), *arguments),
        *("--set", f"evaluate_every={EVALUATE_EVERY}", *changes),
    )
    return f"{task}/{agent}/{variant}/seed-{seed}", command
