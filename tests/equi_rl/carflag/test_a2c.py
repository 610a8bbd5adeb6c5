# SPDX-License-Identifier: MIT
"""Specification of recurrent A2C: returns, gradients, independence of learners, learning."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from equi_rl.carflag.a2c import A2CConfig, A2CError, A2CLearners
from equi_rl.carflag.worlds import CarFlag1D, CarFlag2D

SHORT = A2CConfig(envs=4, rollout_steps=12)


def learners_on(world, *, config=SHORT, seeds=(0, 1), equivariant=True):
    return A2CLearners(world, equivariant=equivariant, config=config, seeds=seeds)


# --- n-step returns -------------------------------------------------------------------------------


def returns_of(
    learners, reward, terminated, truncated, time_out_values, next_value, values=(0, 0, 0)
):
    """Feed one world's fate (T,) through the learners' recursion."""
    steps = [
        SimpleNamespace(
            reward=np.full((1, 1), reward[t], np.float32),
            terminated=np.full((1, 1), terminated[t]),
            truncated=np.full((1, 1), truncated[t]),
        )
        for t in range(len(reward))
    ]
    rollout = SimpleNamespace(
        steps=steps,
        time_out_values=np.array(time_out_values, np.float32).reshape(-1, 1, 1),
        next_value=np.full((1, 1), next_value, np.float32),
    )
    of_histories = np.array(values, np.float32).reshape(-1, 1, 1)
    return learners._returns(rollout, of_histories)[:, 0, 0].numpy()


@pytest.fixture
def three_steps():
    config = A2CConfig(envs=1, rollout_steps=3, discount=0.5)
    return learners_on(CarFlag1D(10), config=config, seeds=(0,))


def test_the_return_of_an_unfinished_episode_ends_with_the_value_of_what_follows(three_steps):
    no = [False] * 3
    found = returns_of(three_steps, [1, 2, 3], no, no, [0, 0, 0], next_value=8)
    assert found.tolist() == [1 + 0.5 * (2 + 0.5 * (3 + 0.5 * 8)), 2 + 0.5 * 7, 7]


def test_returns_are_mixed_with_the_values_of_what_follows():
    config = A2CConfig(envs=1, rollout_steps=3, discount=0.5, gae_lambda=0.25)
    learners = learners_on(CarFlag1D(10), config=config, seeds=(0,))
    no = [False] * 3
    found = returns_of(learners, [1, 2, 3], no, no, [0] * 3, next_value=8, values=[40, 16, 4])
    last = 3 + 0.5 * 8
    middle = 2 + 0.5 * (0.25 * last + 0.75 * 4)
    first = 1 + 0.5 * (0.25 * middle + 0.75 * 16)
    assert found.tolist() == pytest.approx([first, middle, last])


def test_nothing_flows_back_over_a_terminal(three_steps):
    found = returns_of(
        three_steps, [1, 2, 3], [False, True, False], [False] * 3, [0, 0, 0], next_value=8
    )
    assert found.tolist() == [1 + 0.5 * 2, 2, 3 + 0.5 * 8]


def test_a_time_out_adds_the_value_of_its_own_last_observation(three_steps):
    found = returns_of(
        three_steps, [1, 2, 3], [False] * 3, [False, True, False], [0, 10, 0], next_value=8
    )
    assert found.tolist() == [1 + 0.5 * (2 + 0.5 * 10), 2 + 0.5 * 10, 7]


@pytest.mark.parametrize("bootstraps", [True, False])
def test_the_value_after_a_time_out_is_that_of_the_final_observation_and_carried_state(bootstraps):
    # Given worlds whose fourth step is a time-out
    config = A2CConfig(envs=3, rollout_steps=5, bootstrap_time_outs=bootstraps)
    learners = learners_on(CarFlag1D(50), config=config, seeds=(0, 1))
    learners.envs.steps[...] = 46
    weights = learners.policy.weights(learners.policy.expand(learners.parameters))
    with torch.no_grad():
        rollout = learners._play(weights, None)
    assert rollout.steps[3].truncated.all()
    # When the same observations run through the network once more
    state = learners.policy.initial_state(2, 3)
    fresh = learners_on(CarFlag1D(50), config=config, seeds=(0, 1))
    observation = fresh.observation
    for t in range(4):
        _, _, state = learners.policy.step(weights, torch.from_numpy(observation), state)
        observation = rollout.steps[t].final_observation
    _, expected, _ = learners.policy.step(weights, torch.from_numpy(observation), state)
    # Then its value there is what bootstraps, and nothing elsewhere
    found = rollout.time_out_values
    wanted = expected.numpy() if bootstraps else np.zeros((2, 3))
    np.testing.assert_allclose(found[3], wanted, atol=1e-6)
    assert not np.delete(found, 3, axis=0).any()


def test_advantages_are_normalised_within_each_learner_if_asked():
    returns = torch.tensor([[[1.0, 3.0], [10.0, 50.0]], [[5.0, 7.0], [20.0, 0.0]]])  # T, L, N
    values = torch.full_like(returns, 2.0)
    plain, normal = (
        learners_on(CarFlag1D(10), config=A2CConfig(normalise_advantages=on))._advantages(
            returns, values
        )
        for on in (False, True)
    )
    assert torch.equal(plain, returns - 2.0)
    spread = np.std([-1.0, 1.0, 3.0, 5.0], ddof=1)
    np.testing.assert_allclose(normal[:, 0], np.array([[-3, -1], [1, 3]]) / spread, rtol=1e-4)
    torch.testing.assert_close(normal.mean(dim=(0, 2)), torch.zeros(2), atol=1e-6, rtol=0)


def test_a_rollout_in_which_nothing_differs_has_no_advantages():
    learners = learners_on(CarFlag1D(10), config=A2CConfig(normalise_advantages=True))
    nothing = torch.zeros(3, 2, 4)
    assert torch.equal(learners._advantages(nothing, nothing), nothing)


# --- updates --------------------------------------------------------------------------------------


@pytest.mark.parametrize("equivariant", [True, False])
def test_caching_images_changes_nothing_in_what_is_learned(equivariant, monkeypatch):
    with_memory = learners_on(CarFlag2D(7), equivariant=equivariant)
    without = learners_on(CarFlag2D(7), equivariant=equivariant)
    monkeypatch.setattr(without, "_encoder_cache", lambda weights: None)
    for _ in range(3):
        one, two = with_memory.update(), without.update()
        np.testing.assert_allclose(one.gradient_norm, two.gradient_norm, rtol=1e-3)
    torch.testing.assert_close(with_memory.parameters, without.parameters, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("world", [CarFlag1D(10), CarFlag2D(5)], ids=str)
def test_a_learner_learns_the_same_alone_and_beside_others(world):
    alone = learners_on(world, seeds=(7,))
    beside = learners_on(world, seeds=(3, 7))
    for _ in range(3):
        alone.update()
        beside.update()
    torch.testing.assert_close(alone.parameters[0], beside.parameters[1], atol=1e-4, rtol=1e-3)


def test_evaluation_does_not_disturb_training():
    one, two = learners_on(CarFlag1D(10)), learners_on(CarFlag1D(10))
    for _ in range(4):
        one.update()
        one.evaluate(5, seed=one.updates)
        two.update()
    assert torch.equal(one.parameters, two.parameters)


@pytest.mark.parametrize(("correction", "length"), [(True, 3e-3), (False, 3e-2)])
def test_the_first_gradient_step_is_the_learning_rate_or_uncorrected_ten_times_that(
    correction, length
):
    config = A2CConfig(rms_correction=correction)
    learners = learners_on(CarFlag1D(10), config=config, seeds=(0,))
    gradient = torch.zeros_like(learners.parameters)
    gradient[0, :2] = torch.tensor([3.0, -4.0])  # norm 5, clipped to 0.5
    before = learners.parameters.clone()
    norm = learners._descend(gradient)
    assert float(norm) == pytest.approx(5.0)
    expected = torch.tensor([length, -length])
    torch.testing.assert_close((before - learners.parameters)[0, :2], expected, rtol=1e-3, atol=0)


def test_later_gradient_steps_are_rmsprop_on_the_clipped_gradient():
    learners = learners_on(CarFlag1D(10), config=A2CConfig(rms_correction=True), seeds=(0,))
    clipped = [torch.tensor([0.3, -0.4]), torch.tensor([0.5, 0.0])]
    for updates, pair in enumerate(clipped):
        gradient = torch.zeros_like(learners.parameters)
        gradient[0, :2] = 10.0 * pair  # norm 5, clipped to 0.5
        before = learners.parameters.clone()
        learners._descend(gradient)
        learners.updates = updates + 1
    # weighted mean of both squares, newest with weight 1, the one before with 0.99
    mean_square = (clipped[1] ** 2 + 0.99 * clipped[0] ** 2) / 1.99
    expected = 3e-3 * clipped[1] / (mean_square.sqrt() + 1e-5)
    torch.testing.assert_close(
        (before - learners.parameters)[0, :2], expected, rtol=1e-3, atol=1e-7
    )


def test_the_policy_is_exactly_symmetric_after_training_too():
    learners = learners_on(CarFlag1D(10), seeds=(0,))
    for _ in range(20):
        learners.update()
    policy = learners.policy
    weights = policy.weights(policy.expand(learners.parameters))
    state = policy.initial_state(1, 1)
    here = policy.step(weights, torch.tensor([[[0.3, 1.0]]]), state)
    mirrored = policy.step(weights, torch.tensor([[[-0.3, -1.0]]]), state)
    torch.testing.assert_close(here[0].flip(-1), mirrored[0], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(here[1], mirrored[1], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("envs", 0),
        ("rollout_steps", -1),
        ("discount", 1.5),
        ("rms_decay", 1.0),
        ("entropy_weight", -0.1),
    ],
)
def test_nonsensical_settings_are_refused_by_name(name, value):
    with pytest.raises(A2CError, match=name):
        A2CConfig(**{name: value})


def test_a_short_line_is_learned_to_near_perfection():
    # On a line of 10 the hint is near: memory is needed, a few thousand steps are enough.
    config = A2CConfig(rollout_steps=10)
    learners = learners_on(CarFlag1D(10), config=config, seeds=(0, 1))
    best = 0.0
    while learners.steps < 80_000 and best < 0.95:
        for _ in range(50):
            learners.update()
        best = max(best, float(learners.evaluate(100, seed=learners.updates).success.max()))
    assert best >= 0.95


@pytest.mark.slow
def test_a_small_grid_is_learned_with_the_hint():
    learners = learners_on(CarFlag2D(5), config=A2CConfig(rollout_steps=20), seeds=(0, 1, 2, 3))
    blind = learners.evaluate(200, seed=0).success.mean()
    while learners.steps < 300_000:
        learners.update()
    assert learners.evaluate(200, seed=1).success.mean() > max(0.9, blind + 0.3)
