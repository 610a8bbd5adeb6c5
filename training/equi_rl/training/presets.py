# SPDX-License-Identifier: MIT
"""Presets: settings of a run that belong together.

paper: the published recipe. 80 demonstrations of the expert that tries a random object, as many
    updates of recurrent SAC as they have steps, 20 random episodes, again as many updates as these
    have steps, then one update per step to 41,000 environment steps (block pushing 81,000).
reward: 80 demonstrations and reward, affordable on two CPU cores. The actor is pretrained by
    imitation until it is good at it; then a critic that sees the simulator's state (asymmetric
    actor-critic: in training only) improves all of it by sampled actions (MPO), at a tenth of an
    update per step.
brief: to compare many agents. As reward, to 12,000 steps: the actor waits 1,000 steps for its
    critic instead of 6,000, in which the critic makes as many steps, and then learns faster. An
    imitation loss that fades holds it while the critic is young. Every evaluation has 100 episodes.
deploy: for policies that are deployed. As reward, but with 300 demonstrations of an expert that
    tries the nearest object first, on scenes that vary, with an arm as stiff as a real one.
ship: also for deployment, without reward. An expert that decides only by what can be seen labels
    every state which the policy visits (DAgger). Neither is comparable with the first three.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from equi_rl.agents.asymmetric_settings import AsymmetricSettings
from equi_rl.agents.imitation import ImitationSettings
from equi_rl.envs import TASKS
from equi_rl.experts import FirstChoice
from equi_rl.nets.config import Combination
from equi_rl.training.config import (
    AGENTS,
    LEARN_FROM_VALUES,
    Preset,
    RobotConfigError,
    RobotRun,
)

_REWARD: dict[str, Any] = {
    "episodes_per_round": 10,
    "updates_per_round": 0,
    "updates_per_step": 0.1,
    "rounds": 0,
    "environment_steps": 41_000,
    "exploration_std": 0.15,
    "evaluate_every": 5,
    "evaluation_episodes": 20,
    "evaluation_share": 0.1,
    "failing_evaluations": 0,
    "batch_episodes": 16,
    "demonstrations_per_batch": 4,
    "recent_per_batch": 6,
    "imitation": ImitationSettings(updates=2000, learning_rate=6e-3, log_std=-2.0),
}
PRESETS: Mapping[Preset, dict[str, Any]] = {
    Preset.PAPER: {
        "random_episodes": 20,
        "episodes_per_round": 1,
        "updates_per_round": 0,
        "pre_updates_per_step": 1.0,
        "rounds": 0,
        "environment_steps": 41_000,
        "evaluate_every": 25,
        "evaluation_episodes": 20,
        "evaluation_share": 0.1,
        "failing_evaluations": 0,
        "batch_episodes": 32,
    },
    Preset.REWARD: _REWARD,
    Preset.BRIEF: {
        **_REWARD,
        "environment_steps": 12_000,
        "evaluation_episodes": 100,
        "evaluation_share": 1.25,
        "asymmetric": AsymmetricSettings(
            actor_frozen_updates=100,
            frozen_critic_steps=12,
            demonstration_weight=2.0,
            actor_learning_rate=1e-3,
            policy_ema=0.02,
        ),
    },
    Preset.DEPLOY: {
        **_REWARD,
        "first_choice": FirstChoice.NEAREST,
        "randomise": True,
        "stiff_arm": True,
        "demonstrations": 300,
        "evaluation_episodes": 100,
        "evaluation_share": 0.75,
    },
    Preset.SHIP: {
        "first_choice": FirstChoice.NEAREST,
        "randomise": True,
        "stiff_arm": True,
        "demonstrations": 600,
        "episodes_per_round": 10,
        "updates_per_round": 40,
        "rounds": 300,
        "expert_takeover_within": 30,
        "expert_takeover_grows_to": 50,
        "batch_episodes": 16,
        "evaluate_every": 20,
        "imitation": ImitationSettings(updates=900, learning_rate=6e-3, policy_ema=0.005),
    },
}


LONGER_BUDGETS: Mapping[tuple[Preset, str], int] = {
    (Preset.PAPER, "block_pushing"): 81_000,
}
"""Environment steps of tasks that take longer than the others."""
PLAIN_IMITATION_RATE = 2e-3
"""Adam's learning rate of imitation for image encoders without symmetry, in the presets that learn
from values; found with as much effort as that of the others (`equi-sweep learning-rates`)."""
_DEFAULTS = RobotRun(TASKS[0])


def robot_run(
    task: str, preset: Preset | str, agent: str = "equi-rsac", **changes: Any
) -> RobotRun:
    """A run of a preset with some fields changed.

    Nested settings may be given in part: ``robot_run(task, "paper", sac={"tau": 0.01})``.
    """
    try:
        preset = Preset(preset)
    except ValueError:
        known = ", ".join(item.value for item in Preset)
        raise RobotConfigError(f"preset is '{preset}'; it must be one of {known}") from None
    settings = dict(PRESETS[preset])
    if (preset, task) in LONGER_BUDGETS:
        settings["environment_steps"] = LONGER_BUDGETS[preset, task]
    if preset in LEARN_FROM_VALUES and _sees_plainly(agent):
        settings["imitation"] = dataclasses.replace(
            settings["imitation"], learning_rate=PLAIN_IMITATION_RATE
        )
    for name, change in changes.items():
        if isinstance(change, Mapping):
            usual = settings.get(name, getattr(_DEFAULTS, name))
            change = dataclasses.replace(usual, **change)
        settings[name] = change
    return RobotRun(task, preset, agent, **settings)


def _sees_plainly(agent: str) -> bool:
    kind = AGENTS.get(agent)  # an unknown one is refused with the run
    return kind is not None and kind.combination in (Combination.PLAIN, Combination.CRITIC_ONLY)
