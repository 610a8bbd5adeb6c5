# SPDX-License-Identifier: MIT
"""Specification of the asymmetric actor-critic: what the critic is taught, and whom it teaches."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from small_networks import random_batch, tiny_config

from equi_rl.agents.asymmetric import AsymmetricUpdate, required_states
from equi_rl.agents.asymmetric_settings import AsymmetricSettings, Teacher
from equi_rl.agents.state_critic import StateCritic, rotate_horizontally
from equi_rl.agents.state_replay import StateBatch
from equi_rl.data.episode_batch import BatchError, EpisodeBatch
from equi_rl.nets.networks import Actor

LENGTHS = (3, 7, 1, 5)
STATE_SIZE = 4


def a_batch(seed: int = 0, lengths=LENGTHS) -> EpisodeBatch:
    """Random episodes with states; every episode ends with reward 1."""
    generator = torch.Generator().manual_seed(seed)
    batch = random_batch(tiny_config(), lengths, generator)
    steps = batch.layout.n_steps
    return dataclasses.replace(
        batch,
        privileged_state=torch.randn(steps, STATE_SIZE, generator=generator),
        privileged_frame_rad=torch.rand(steps, generator=generator) * 6.0,
    )


def states_of(batch: EpisodeBatch, policy_actions: torch.Tensor | None = None) -> StateBatch:
    """What the critic sees of a batch; the policy's actions are given in the network's frame."""
    states, frame_rad = required_states(batch)
    asked = batch.requested_actions if policy_actions is None else policy_actions
    return StateBatch(
        batch.layout,
        states,
        rotate_horizontally(batch.requested_actions, -frame_rad),
        rotate_horizontally(asked, -frame_rad),
        batch.rewards,
    )


def an_update(**settings) -> AsymmetricUpdate:
    torch.manual_seed(0)
    chosen = AsymmetricSettings(**{"width": 16, "learning_rate_warmup_updates": 0, **settings})
    critic = StateCritic(STATE_SIZE, chosen.heads, chosen.width)
    return AsymmetricUpdate(Actor(tiny_config()), critic, chosen, planned_updates=100)


def weights_of(network: torch.nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in network.parameters()]


def moved(network: torch.nn.Module, before: list[torch.Tensor]) -> bool:
    return any(
        not torch.equal(new, old) for new, old in zip(network.parameters(), before, strict=True)
    )


def by_episode(batch: EpisodeBatch, values: torch.Tensor) -> list[list[float]]:
    layout = batch.layout
    return [values[layout.step_episode == number].tolist() for number in range(len(layout.order))]


# The critic -------------------------------------------------------------------------------------


def test_candidates_have_the_values_that_each_has_alone():
    critic = StateCritic(STATE_SIZE, heads=3, width=8)
    states, actions = torch.randn(6, STATE_SIZE), torch.randn(5, 6, 5)
    together = critic(states, actions)
    assert together.shape == (3, 5, 6)
    for number, one in enumerate(actions):
        torch.testing.assert_close(together[:, number], critic(states, one[None])[:, 0])


def test_horizontal_steps_rotate_counter_clockwise_and_nothing_else_does():
    action = torch.tensor([0.1, 1.0, 0.0, 0.3, 0.4])
    turned = rotate_horizontally(action, torch.tensor(torch.pi / 2))
    torch.testing.assert_close(turned, torch.tensor([0.1, 0.0, 1.0, 0.3, 0.4]))


def test_a_rotated_episode_has_the_same_targets():
    update, batch = an_update(target_noise_std=0.0), a_batch()
    angle = torch.tensor(0.8)
    _, frame_rad = required_states(batch)
    turned = dataclasses.replace(batch, privileged_frame_rad=frame_rad + angle)
    mean = torch.rand(batch.layout.n_steps, 5) - 0.5
    found = []
    for one, action in ((batch, mean), (turned, rotate_horizontally(mean, angle))):
        torch.manual_seed(1)  # draws the same pair of heads
        found.append(update.targets(states_of(one, action)))
    torch.testing.assert_close(found[0], found[1])


def test_targets_are_lambda_returns_that_end_with_the_episode():
    update, batch = an_update(target_noise_std=0.0, heads=2, td_lambda=0.6), a_batch()
    batch = dataclasses.replace(batch, terminated=torch.zeros(batch.layout.n_steps))  # time-outs
    mean = torch.rand(batch.layout.n_steps, 5) - 0.5
    with torch.no_grad():
        update.target.out_bias.fill_(0.3)
        found = by_episode(batch, update.targets(states_of(batch, mean)))
        states, frame_rad = required_states(batch)
        asked = rotate_horizontally(mean, -frame_rad)
        values = update.target(states, asked[None])[:, 0].amin(dim=0)
    rewards, values = by_episode(batch, batch.rewards), by_episode(batch, values)
    for episode, length in enumerate(LENGTHS):
        expected, after = [], 0.0
        for step in reversed(range(length)):
            last = step == length - 1
            ahead = 0.0 if last else 0.4 * values[episode][step + 1] + 0.6 * after
            after = rewards[episode][step] + 0.98 * ahead
            expected.append(after)
        assert found[episode] == pytest.approx(expected[::-1], rel=1e-4)


def test_the_critic_learns_what_an_action_earns():
    update = an_update(critic_learning_rate=3e-3, tau=0.1)
    batch = a_batch(lengths=(1,) * 64)
    good = batch.requested_actions[:, 3] > 0  # upward steps earn the reward
    batch = dataclasses.replace(batch, rewards=good.float())
    for _ in range(200):
        metrics = update.improve_critic(states_of(batch))
    assert metrics["critic_loss"] < 0.1
    _, seen = update.improve_actor(batch, diagnose=True)
    assert seen["q_return_rank_correlation"] > 0.7


def test_without_reward_nothing_is_worth_anything():
    update = an_update(reward_scale=0.0)
    with torch.no_grad():
        update.target.out.zero_()
        found = update.targets(states_of(a_batch()))
    assert torch.equal(found, torch.zeros(sum(LENGTHS)))


# The actor --------------------------------------------------------------------------------------


def test_all_of_the_actor_learns_and_says_what_it_would_do_in_the_frames_of_the_states():
    update, batch = an_update(), a_batch()
    encoder, critic = weights_of(update.actor.history.encoder), weights_of(update.critic)
    mean = update._decide(batch).mean.detach()
    actions, metrics = update.improve_actor(batch)
    assert "actor_loss" in metrics
    assert moved(update.actor.history.encoder, encoder)
    assert not moved(update.critic, critic)
    torch.testing.assert_close(actions, states_of(batch, mean).policy_actions)


def test_the_policy_goes_where_the_critic_sees_value(monkeypatch):
    update = an_update(actor_learning_rate=1e-2)
    batch = a_batch()
    wanted = torch.tensor([0.0, 0.0, 0.0, 0.5, 0.0])

    def near_what_is_wanted(states, actions):
        return -(actions - wanted).square().sum(dim=-1)[None]

    monkeypatch.setattr(update.critic, "forward", near_what_is_wanted)
    before = float((update._decide(batch).mean.detach()[:, 3] - 0.5).abs().mean())
    for _ in range(60):
        update.improve_actor(batch)
    after = float((update._decide(batch).mean.detach()[:, 3] - 0.5).abs().mean())
    assert after < 0.5 * before


def nearness_to(batch: EpisodeBatch, weight: float, updates_before: int) -> float:
    """How far the policy stays from the demonstrated height, where values want the opposite."""
    update = an_update(actor_learning_rate=1e-2, demonstration_weight=weight)

    def far_from_what_was_shown(states, actions):
        return -(actions[..., 3] + 0.4).square()[None]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(update.critic, "forward", far_from_what_was_shown)
        for _ in range(80):
            update.updates = updates_before
            update.improve_actor(batch)
    shown = batch.is_demonstration
    return float((update._decide(batch).mean.detach()[shown][:, 3] - 0.4).abs().mean())


def test_a_demonstration_loss_holds_the_policy_near_what_was_shown_until_the_run_ends():
    batch = a_batch()
    shown = batch.layout.step_episode < 2
    label = torch.tensor([0.0, 0.3, 0.0, 0.4, 0.0])
    actions = torch.where(shown[:, None], label, -label)
    batch = dataclasses.replace(batch, requested_actions=actions, is_demonstration=shown)
    without = nearness_to(batch, weight=0.0, updates_before=0)
    held = nearness_to(batch, weight=8.0, updates_before=0)
    at_the_end = nearness_to(batch, weight=8.0, updates_before=100)
    assert held < 0.5 * without
    assert at_the_end == pytest.approx(nearness_to(batch, weight=0.0, updates_before=100))


def test_the_control_imitates_successes_only_and_has_no_critic():
    update = an_update(teacher=Teacher.SUCCESSES, actor_learning_rate=1e-2)
    batch = a_batch()
    # Two episodes fail; what they did is the opposite of what the others did.
    won = batch.layout.step_episode < 2
    label = torch.tensor([0.0, 0.3, 0.0, 0.4, 0.0])
    batch = dataclasses.replace(
        batch,
        requested_actions=torch.where(won[:, None], label, -label),
        rewards=batch.rewards * won,
        terminated=batch.terminated * won,
    )
    critic = weights_of(update.critic)
    for _ in range(80):
        update.improve_actor(batch)
    assert not moved(update.critic, critic)
    height = update._decide(batch).mean.detach()[won][:, 3]
    torch.testing.assert_close(height, torch.full_like(height, 0.4), atol=0.15, rtol=0.0)


def test_the_learning_rate_rises_and_falls_over_the_planned_updates():
    update = an_update(
        actor_learning_rate=1e-3, learning_rate_warmup_updates=10, final_learning_rate_share=0.1
    )
    rates = []
    for update.updates in (0, 10, 50, 100, 200):
        rates.append(update._learning_rate())
    assert rates[0] == pytest.approx(1e-4)
    assert 9e-4 < rates[1] < 1e-3
    assert rates[2] == pytest.approx(0.55e-3)
    assert rates[3:] == pytest.approx([1e-4, 1e-4])


def test_the_critic_makes_more_steps_while_it_learns_alone():
    update = an_update(actor_frozen_updates=2, frozen_critic_steps=5, critic_steps=1)
    planned = []
    for number in range(4):
        update.updates = number
        planned.append(update.critic_steps)
    assert planned == [5, 5, 1, 1]


# What does not fit ------------------------------------------------------------------------------


def test_a_batch_without_the_simulators_state_is_refused():
    update = an_update()
    batch = dataclasses.replace(a_batch(), privileged_state=None, privileged_frame_rad=None)
    with pytest.raises(BatchError, match=r"privileged_state is None; .* collect them again"):
        update.improve_actor(batch)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"discount": 1.5}, r"asymmetric.discount is 1.5; it must lie between 0 and 1"),
        (
            {"critic_batch_episodes": 8},
            r"critic_recent_per_batch are 18 together; they must fit in critic_batch_episodes, 8",
        ),
        ({"heads": 1}, r"asymmetric.heads is 1; it must be at least 2"),
        ({"policy_ema": 0.0}, r"asymmetric.policy_ema is 0.0; it must be above 0"),
        ({"reward_scale": -1.0}, r"asymmetric.reward_scale is -1.0; it must be at least 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        AsymmetricSettings(**settings)
