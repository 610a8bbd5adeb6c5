# SPDX-License-Identifier: MIT
"""Laws: the deployed policy is the training actor, and all of its memory is in the state.

Checked on exported files of full-size and small networks, for every group and squash that can be
deployed, over whole episodes.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_networks import random_batch, tiny_config

from equi_core.contract import ImageSpec, PolicyContract
from equi_policy.deployed_policy import DeployedPolicy
from equi_rl.agents.sac import SacUpdate
from equi_rl.export.exporter import export
from equi_rl.nets import symmetry
from equi_rl.nets.agent import agent_configs
from equi_rl.nets.checkpoint import load_checkpoint, save_checkpoint
from equi_rl.nets.config import reference_config
from equi_rl.nets.distributions import squash
from equi_rl.nets.equivariance import random_histories, run_actor
from equi_rl.nets.networks import Actor, Critic

PARITY = 1e-5
STEPS = 50
CONFIGS = {
    "full size C4": reference_config("C4"),
    "small D4": tiny_config("D4"),
    "small C8, radial": tiny_config("C8", squash="radial"),
    "small plain": agent_configs("plain", tiny_config())[0],
    "small plain LSTM": agent_configs("plain-lstm", tiny_config())[0],
    "small without skip or action": tiny_config(skip_connection=False, action_channels=0),
}


@pytest.fixture(scope="module", params=CONFIGS)
def pair(request, tmp_path_factory):
    """A trained actor and its export, through a checkpoint on disk."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("model")
    actor = Actor(CONFIGS[request.param])
    config = actor.config
    learner = SacUpdate(actor, Critic(config))
    for _ in range(2):
        learner.step(random_batch(config, (3, 2)))
    contract = PolicyContract(
        task="block_picking",
        group=config.group,
        image=ImageSpec(size_px=config.observation_size),
        network=config.to_mapping(),
    )
    save_checkpoint(folder / "checkpoint", contract, actor)
    export(load_checkpoint(folder / "checkpoint"), folder / "model")
    return actor, DeployedPolicy.load(folder / "model")


def play(policy, observations, executed):
    """Actions (T, 5) when the given actions are what the robot executes."""
    state, actions = policy.initial_state(), []
    for observation, done in zip(observations, executed, strict=True):
        action, state = policy.act(observation, state)
        actions.append(action)
        state = state.with_executed(done)
    return np.stack(actions)


def test_stepping_the_deployed_policy_equals_the_training_actor_on_the_whole_sequence(pair):
    actor, policy = pair
    histories = random_histories(actor.config, STEPS, episodes=1, seed=4)
    mean, log_std = run_actor(actor, histories)
    expected = squash(mean, actor.config.squash)[:, 0].numpy()
    found = play(policy, histories.observations[:, 0].numpy(), histories.actions[:, 0].numpy())
    np.testing.assert_allclose(found, expected, atol=PARITY, rtol=0.0)
    step = policy.step(histories.observations[0, 0].numpy(), policy.initial_state())
    np.testing.assert_allclose(step.std, log_std[0, 0].exp().numpy(), rtol=1e-4)


def test_an_episode_may_be_interrupted_and_continued_from_its_state(pair):
    actor, policy = pair
    observations = random_histories(actor.config, 12, 1, seed=5).observations[:, 0].numpy()
    state, whole = policy.initial_state(), []
    states = []
    for observation in observations:
        states.append(state)
        action, state = policy.act(observation, state)
        whole.append(action)
    policy.act(observations[0], policy.initial_state())  # another episode in between
    resumed, _ = policy.act(observations[7], states[7])
    np.testing.assert_array_equal(resumed, whole[7])


def test_a_repeated_observation_advances_only_the_state_that_is_kept(pair):
    _, policy = pair
    size = policy.layout.image_px
    observation = np.zeros((2, size, size), np.float32)
    start = policy.initial_state()
    first, after_one = policy.act(observation, start)
    again, _ = policy.act(observation, start)  # the result of this call is dropped
    np.testing.assert_array_equal(first, again)
    second, after_two = policy.act(observation, after_one)
    assert (start.step, after_one.step, after_two.step) == (0, 1, 2)
    assert np.abs(second - first).max() > 0.0


def test_the_exported_policy_is_symmetric_exactly_if_its_network_is(pair):
    actor, policy = pair
    config = actor.config
    group = config.symmetry
    histories = random_histories(config, 20, 1, seed=6)
    observations = histories.observations[:, 0]
    executed = histories.actions[:, 0]
    base = play(policy, observations.numpy(), executed.numpy())
    worst = 0.0
    for g in group:
        if not group.is_exact_on_pixels(g):
            continue
        rotated = play(
            policy,
            symmetry.transform_observation(group, g, observations).numpy(),
            symmetry.transform_action(group, g, executed).numpy(),
        )
        expected = symmetry.transform_action(group, g, base)
        worst = max(worst, float(np.abs(rotated - expected).max()))
    if config.is_equivariant:
        assert worst < 2e-5
    else:
        assert worst > 1e-4
