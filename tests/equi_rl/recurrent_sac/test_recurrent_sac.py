# SPDX-License-Identifier: MIT
"""Recurrent SAC on any gymnasium environment: vectors, images, memories, symmetry, files."""

from __future__ import annotations

import dataclasses

import gymnasium
import numpy as np
import pytest
import torch

import equi_rl.envs  # noqa: F401  registers the environments
from equi_rl.data.array_episode import ArrayEpisode, pack_arrays
from equi_rl.nets import dense, symmetry
from equi_rl.nets.networks import Actor, Critic
from equi_rl.nets.representations import layout_matrix, layout_named
from equi_rl.recurrent_sac.agent import RecurrentSac
from equi_rl.recurrent_sac.config import RecurrentSacConfig, Symmetry, tiling_encoder
from equi_rl.recurrent_sac.worlds import MIRRORED_CARFLAG, MIRRORED_PENDULUM, ContinuousCarFlag

TINY = RecurrentSacConfig(
    encoder_channels=(16,),
    action_channels=8,
    recurrent_channels=16,
    head_channels=(16,),
    batch_episodes=4,
    random_steps=60,
    updates_per_step=0.05,
)
IMAGES = Symmetry("C4", action="trivial:1,vector:2,trivial:2")


class Picture(gymnasium.Env):
    """Random 10 x 10 images; an episode of three steps."""

    observation_space = gymnasium.spaces.Box(0, 255, (2, 10, 10), np.uint8)
    action_space = gymnasium.spaces.Box(
        np.array([-2.0, 0.0]), np.array([2.0, 1.0]), dtype=np.float32
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 3
        return self._see(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.left -= 1
        return self._see(), float(action[0]), False, self.left == 0, {}

    def _see(self):
        return self.np_random.integers(0, 256, (2, 10, 10), dtype=np.uint8)


def weights_of(agent: RecurrentSac) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in agent.actor.parameters()]


@pytest.mark.parametrize("memory", ["lstm", "none"])
@pytest.mark.parametrize(
    ("env_id", "mirrored"),
    [
        ("equi/ContinuousCarFlag-v0", MIRRORED_CARFLAG),
        ("equi/MaskedPendulum-v0", MIRRORED_PENDULUM),
    ],
)
def test_every_combination_learns_a_few_steps_and_acts_in_range(env_id, mirrored, memory):
    config = dataclasses.replace(TINY, memory=memory, symmetry=mirrored, sequence_steps=20)
    agent = RecurrentSac(gymnasium.make(env_id), config)
    before, seen = weights_of(agent), []
    agent.learn(300, seen.append)
    assert any(not torch.equal(a, b) for a, b in zip(before, weights_of(agent), strict=True))
    assert seen[-1].metrics.keys() >= {"critic_loss", "actor_loss", "temperature"}
    action, _ = agent.act(np.zeros(2, np.float32), agent.start())
    assert agent.env.action_space.contains(action)


def test_images_of_bytes_and_uneven_action_ranges_are_scaled():
    agent = RecurrentSac(Picture(), dataclasses.replace(TINY, random_steps=6, updates_per_step=0.5))
    agent.learn(20)
    stored = next(iter(agent.replay_buffer))
    assert stored.observations.max() <= 1.0
    assert np.abs(stored.requested_action).max() <= 1.0


@pytest.mark.parametrize("memory", ["lstm", "none"])
@pytest.mark.parametrize(
    ("claimed", "shape", "actions"),
    [(MIRRORED_PENDULUM, (2,), 1), (MIRRORED_CARFLAG, (2,), 1), (IMAGES, (3, 11, 11), 5)],
)
def test_law_the_networks_respect_the_claimed_symmetry(claimed, shape, actions, memory):
    torch.manual_seed(0)
    config = dataclasses.replace(TINY, symmetry=claimed, memory=memory).network(shape, actions)
    actor, critic, group = Actor(config), Critic(config), config.symmetry
    counts = torch.full((5,), 3)
    seen, previous, asked = (
        torch.randn(15, *shape),
        torch.randn(15, actions),
        torch.randn(15, actions),
    )

    def outputs(seen, previous, asked):
        with torch.no_grad():
            a, c = actor.dense(), critic.dense()
            frames = dense.prepare_arrays(config, seen)
            told = dense.run_history(
                config, a.history, dense.encode(config, a.history.encoder, frames), previous, counts
            )[0]
            valued = dense.run_history(
                config, c.history, dense.encode(config, c.history.encoder, frames), previous, counts
            )[0]
            return *dense.actor_outputs(config, a, told), dense.critic_values(
                config, c, valued, asked
            )

    mean, log_std, values = outputs(seen, previous, asked)
    for g in group:
        on_action = torch.tensor(
            layout_matrix(group, g, config.action_components), dtype=torch.float32
        )
        if len(shape) == 1:
            matrix = layout_matrix(group, g, config.observation_channels)
            moved = seen @ torch.tensor(matrix.T, dtype=torch.float32)
        else:
            moved = symmetry.transform_images(group, g, seen)
        got = outputs(moved, previous @ on_action.T, asked @ on_action.T)
        torch.testing.assert_close(got[0], mean @ on_action.T, atol=1e-4, rtol=0)
        torch.testing.assert_close(got[1], log_std, atol=1e-4, rtol=0)
        torch.testing.assert_close(got[2], values, atol=1e-4, rtol=0)


def test_plain_networks_do_not_happen_to_be_symmetric():
    config = TINY.network((2,), 1)
    torch.manual_seed(0)
    weights = Actor(config).dense()
    frames = dense.prepare_arrays(config, torch.tensor([[0.5, 1.0], [-0.5, -1.0]]))
    features = dense.encode(config, weights.history.encoder, frames)
    assert float((features[0] - features[1]).detach().abs().max()) > 1e-2


def test_a_feed_forward_agent_forgets_and_a_recurrent_one_does_not():
    for memory, remembers in (("none", False), ("lstm", True)):
        config = dataclasses.replace(TINY, memory=memory, action_channels=0)
        agent = RecurrentSac(ContinuousCarFlag(), config)
        here = np.array([0.5, 0.0], np.float32)
        _, left = agent.act(np.array([0.0, -1.0], np.float32), agent.start())
        _, right = agent.act(np.array([0.0, 1.0], np.float32), agent.start())
        differs = not np.array_equal(agent.act(here, left)[0], agent.act(here, right)[0])
        assert differs is remembers


def test_the_goal_of_carflag_is_shown_in_the_middle_only():
    env = ContinuousCarFlag()
    seen, _ = env.reset(options={"position": 0.5, "goal_side": -1})
    assert seen.tolist() == [0.5, 0.0]
    for _ in range(2):
        seen, reward, *_ = env.step(np.array([-1.0]))
    assert seen[1] == -1.0
    for _ in range(6):
        seen, reward, ended, _, info = env.step(np.array([-1.0]))
        if ended:
            break
    assert (reward, info["success"], seen.tolist()) == (1.0, True, [-1.0, 0.0])


def test_episodes_of_different_length_pack_step_by_step_without_padding():
    def episode(steps, first):
        frames = np.arange(first, first + steps + 1, dtype=np.float32)[:, None]
        rows = np.arange(first, first + steps, dtype=np.float32)[:, None]
        return ArrayEpisode(frames, rows, rows, rows[:, 0], terminated=True)

    batch = pack_arrays([episode(1, 100), episode(2, 0)])
    assert batch.observations[:, 0].tolist() == [0.0, 100.0, 1.0, 101.0, 2.0]
    assert batch.rewards.tolist() == [0.0, 100.0, 1.0]
    assert batch.terminated.tolist() == [0.0, 1.0, 1.0]


def test_only_the_last_piece_of_an_episode_terminates():
    rows = np.zeros((4, 1), np.float32)
    whole = ArrayEpisode(np.zeros((5, 2)), rows, rows, rows[:, 0], terminated=True)
    assert not whole.window(0, 2).terminated
    assert whole.window(2, 2).terminated
    assert len(whole.window(3, 9)) == 1


def test_a_saved_agent_acts_as_before(tmp_path):
    env = ContinuousCarFlag()
    agent = RecurrentSac(env, dataclasses.replace(TINY, symmetry=MIRRORED_CARFLAG))
    agent.save(tmp_path)
    again = RecurrentSac.load(tmp_path, env)
    seen = np.array([0.3, 0.0], np.float32)
    np.testing.assert_array_equal(
        agent.act(seen, agent.start())[0], again.act(seen, again.start())[0]
    )


def test_the_same_seed_gives_the_same_agent():
    agents = [RecurrentSac(ContinuousCarFlag(), TINY) for _ in range(2)]
    for agent in agents:
        agent.learn(150)
    for one, two in zip(*(weights_of(agent) for agent in agents), strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("size", [3, 5, 6, 9, 11, 16, 31, 64, 84])
def test_an_encoder_tiles_every_image_down_to_one_pixel(size):
    for kernel, stride in zip(*tiling_encoder(size), strict=True):
        assert (size - kernel) % stride == 0
        assert kernel != 2  # escnn has no such filters
        size = (size - kernel) // stride + 1
    assert size == 1


@pytest.mark.parametrize(
    ("space", "said"),
    [
        (gymnasium.spaces.Discrete(3), "needs a Box"),
        (gymnasium.spaces.Box(-np.inf, np.inf, (1,)), "must be finite"),
    ],
)
def test_actions_that_cannot_be_scaled_are_refused(space, said):
    env = ContinuousCarFlag()
    env.action_space = space
    with pytest.raises(ValueError, match=said):
        RecurrentSac(env, TINY)


def test_observations_of_odd_shape_and_bad_settings_are_refused_by_name():
    with pytest.raises(ValueError, match=r"shape \(3, 8, 9\)"):
        TINY.network((3, 8, 9), 1)
    with pytest.raises(ValueError, match="batch_episodes is 0"):
        RecurrentSacConfig(batch_episodes=0)
    with pytest.raises(ValueError, match=r"sac.discount is 5"):
        RecurrentSacConfig(discount=5)
    with pytest.raises(ValueError, match="'spin:1' is not valid"):
        layout_named("trivial:1,spin:1")
    with pytest.raises(ValueError, match=r"memory = 'elephant'"):
        dataclasses.replace(TINY, memory="elephant").network((2,), 1)
