# SPDX-License-Identifier: MIT
"""An episode is a function of what plays and of its seed: not of what was played before."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from equi_rl.envs import SHIPPED_TASKS
from equi_rl.envs.randomisation import DomainRandomisation
from equi_rl.experts import ExpertConfig
from equi_rl.training.collector import CollectorConfig, Demonstrate, Play, Player
from equi_rl.training.config import Preset
from equi_rl.training.presets import robot_run
from equi_rl.training.trainer import make_learner

RECORDED = (
    "depth",
    "holding",
    "requested_action",
    "executed_action",
    "expert_action",
    "reward",
    "privileged_state",
)


@pytest.mark.slow
@pytest.mark.parametrize("task", SHIPPED_TASKS)
def test_an_episode_has_the_same_bits_whatever_its_player_has_played_before(task):
    torch.manual_seed(0)
    policy = make_learner(robot_run(task, Preset.SHIP)).policy()
    config = CollectorConfig(task, ExpertConfig(), DomainRandomisation())
    # The expert takes over after a few steps, so that objects are touched and pushed.
    training = Play(policy, (), stochastic=False, label_with_expert=True, expert_takeover_within=5)
    evaluation = Play(policy, (), stochastic=False, label_with_expert=False, randomised=False)

    seeds = list(range(24))
    in_order = Player(config)
    first = {seed: in_order(training, seed)[0] for seed in seeds}
    in_order.close()

    draw = random.Random(1)
    draw.shuffle(seeds)
    interrupted = Player(config)
    for seed in seeds:
        between = draw.choice((None, evaluation, Demonstrate(())))
        if between is not None:
            interrupted(between, 900 + draw.randrange(50))
        again = interrupted(training, seed)[0]
        for name in RECORDED:
            np.testing.assert_array_equal(
                getattr(again, name), getattr(first[seed], name), f"seed {seed}: {name}"
            )
    interrupted.close()
