# SPDX-License-Identifier: MIT
"""Specification of the latent model: its loss, its causality, its independence of packing."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from slac_runs import SIZE_PX, a_batch, moving_square, tiny_model
from torch.distributions import Normal, kl_divergence

from equi_rl.slac import gaussian, images
from equi_rl.slac.gaussian import Gaussian
from equi_rl.slac.images import depth_of, frames_of
from equi_rl.slac.latent_model import LatentModel, Latents

EPISODES = [moving_square(steps, seed) for seed, steps in enumerate((5, 9, 3))]


def inferred(model: LatentModel, batch, noise: torch.Tensor) -> Latents:
    """Latent states of a batch."""
    features = model.encoder(model.frames(batch))
    previous = batch.layout.previous_actions(batch.executed_actions)
    return model.infer(features, previous, batch.layout, noise)


def loss_of(model: LatentModel, batch, noise: torch.Tensor):
    return model.loss(batch, model.frames(batch), inferred(model, batch, noise))


@pytest.fixture(autouse=True)
def _exact_convolutions(monkeypatch):
    monkeypatch.setattr(images, "convolution_dtype", lambda device: torch.float32)
    torch.manual_seed(0)


@pytest.fixture
def model() -> LatentModel:
    return LatentModel(tiny_model())


def test_the_divergence_of_equal_gaussians_is_zero_and_of_others_that_of_torch():
    one, other = (Gaussian(torch.randn(7, 3), torch.rand(7, 3) + 0.1) for _ in range(2))
    assert torch.equal(gaussian.kl_divergence(one, one), torch.zeros(7))
    expected = kl_divergence(Normal(*one), Normal(*other)).sum(dim=-1)
    torch.testing.assert_close(gaussian.kl_divergence(one, other), expected)


def test_a_likelihood_is_that_of_torch():
    value, mean = torch.randn(9), torch.randn(9)
    expected = -Normal(mean, 0.3).log_prob(value)
    torch.testing.assert_close(gaussian.negative_log_likelihood(value, mean, 0.3), expected)


def test_packing_several_episodes_changes_neither_states_nor_loss(model):
    packed = a_batch(EPISODES).episodes
    noise = model.noise(packed.layout.n_frames)
    together = inferred(model, packed, noise)
    total = torch.zeros(())
    for number, episode in enumerate(EPISODES):
        rows = packed.layout.frame_episode == number
        alone = a_batch([episode]).episodes
        torch.testing.assert_close(
            inferred(model, alone, noise[rows]).states, together.states[rows]
        )
        total = total + loss_of(model, alone, noise[rows]).total * (len(episode) + 1)
    expected = total / packed.layout.n_frames
    torch.testing.assert_close(loss_of(model, packed, noise).total, expected)


def test_the_posterior_of_a_step_sees_the_frames_up_to_it_and_no_later_one(model):
    batch = a_batch([EPISODES[1]]).episodes
    noise = model.noise(batch.layout.n_frames)
    before = inferred(model, batch, noise)
    for changed in range(batch.layout.n_frames):
        depth_m = batch.depth_m.clone()
        depth_m[changed] += 0.05
        after = inferred(model, dataclasses.replace(batch, depth_m=depth_m), noise)
        differs = (after.states != before.states).any(dim=1)
        assert not differs[:changed].any()
        assert differs[changed : changed + 2].all()  # the trace fades below rounding later on


def test_the_prior_of_a_step_knows_the_action_before_it_but_not_its_image(model):
    batch = a_batch([EPISODES[1]]).episodes
    noise = model.noise(batch.layout.n_frames)
    before = inferred(model, batch, noise).prior
    depth_m = batch.depth_m.clone()
    depth_m[4] += 0.05
    by_image = inferred(model, dataclasses.replace(batch, depth_m=depth_m), noise).prior
    assert torch.equal(by_image.mean[:5], before.mean[:5])
    assert not torch.equal(by_image.mean[5], before.mean[5])
    actions = batch.executed_actions.clone()
    actions[3] += 0.3
    by_action = inferred(model, dataclasses.replace(batch, executed_actions=actions), noise).prior
    assert torch.equal(by_action.mean[:4], before.mean[:4])
    assert not torch.equal(by_action.mean[4], before.mean[4])


def test_the_first_prior_is_a_standard_normal_for_every_episode(model):
    latents = inferred(model, batch := a_batch(EPISODES).episodes, model.noise(20))
    first = batch.layout.frame_time == 0
    assert torch.equal(latents.prior.mean[first], torch.zeros(3, 4))
    assert torch.equal(latents.prior.std[first], torch.ones(3, 4))
    assert (latents.prior.mean[~first] != 0.0).all()


def test_imagining_a_step_is_the_prior_of_inference(model):
    batch = a_batch([EPISODES[0]]).episodes
    latents = inferred(model, batch, model.noise(batch.layout.n_frames))
    z1, z2 = model.imagine(latents.z2[2:3], batch.executed_actions[2:3], torch.zeros(1, 12))
    torch.testing.assert_close(z1, latents.prior.mean[3:4])
    assert z2.shape == (1, 8)


def test_the_bound_rises_and_the_reconstruction_beats_the_mean_image():
    model = LatentModel(tiny_model(channels=(16, 32), hidden_size=64))
    batch = a_batch([moving_square(8, seed) for seed in range(6)]).episodes
    frames = model.frames(batch)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    noise = model.noise(batch.layout.n_frames)
    start = float(loss_of(model, batch, noise).total.detach())
    for _ in range(250):
        loss = loss_of(model, batch, model.noise(batch.layout.n_frames))
        optimiser.zero_grad()
        loss.total.backward()
        optimiser.step()
    with torch.no_grad():
        assert float(loss_of(model, batch, noise).total) < start - 100.0
        drawn, _ = model.decoder(inferred(model, batch, noise).states)
    error = (drawn - frames.pixels).square().mean()
    of_mean_image = (frames.pixels.mean(dim=0) - frames.pixels).square().mean()
    assert error < 0.5 * of_mean_image


def test_the_heads_learn_where_the_reward_is_and_where_the_task_ends():
    model = LatentModel(tiny_model(hidden_size=64))
    episodes = [moving_square(6, seed, succeeds=seed % 2 == 0) for seed in range(8)]
    batch = a_batch(episodes).episodes
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(200):
        loss = loss_of(model, batch, model.noise(batch.layout.n_frames))
        optimiser.zero_grad()
        loss.total.backward()
        optimiser.step()
    with torch.no_grad():
        states = inferred(model, batch, model.noise(batch.layout.n_frames)).states
        now, following = batch.layout.frame_of_step, batch.layout.next_frame_of_step
        outcomes = model.outcomes(states[now], batch.executed_actions, states[following])
    succeeded = batch.rewards > 0.5
    assert int(succeeded.sum()) == 4
    assert outcomes[succeeded, 0].mean() > 0.7
    assert outcomes[~succeeded, 0].abs().mean() < 0.2
    assert outcomes[succeeded, 1].min() > outcomes[~succeeded, 1].mean()


def test_images_of_the_robot_are_shrunk_and_depth_comes_back_in_metres():
    depth_m = torch.rand(3, 84, 84) * 0.3
    frames = frames_of(depth_m, torch.tensor([True, False, True]), 64)
    assert frames.pixels.shape == (3, 1, 64, 64)
    assert frames.holding.tolist() == [1.0, 0.0, 1.0]
    torch.testing.assert_close(depth_of(frames.pixels).mean(), depth_m.mean(), atol=2e-3, rtol=0.0)
    turned = frames_of(torch.rot90(depth_m, dims=(1, 2)), torch.zeros(3), 64).pixels
    torch.testing.assert_close(turned, torch.rot90(frames.pixels, dims=(2, 3)))
    same = frames_of(depth_m[:, :SIZE_PX, :SIZE_PX], torch.zeros(3), SIZE_PX).pixels
    torch.testing.assert_close(depth_of(same)[:, 0], depth_m[:, :SIZE_PX, :SIZE_PX])


def test_convolutions_in_half_precision_leave_float32_weights_and_gradients(monkeypatch):
    monkeypatch.setattr(images, "convolution_dtype", lambda device: torch.bfloat16)
    model = LatentModel(tiny_model())
    batch = a_batch(EPISODES).episodes
    rough = loss_of(model, batch, noise := model.noise(batch.layout.n_frames))
    rough.total.backward()
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert all(p.grad is not None and p.grad.dtype is torch.float32 for p in model.parameters())
    monkeypatch.setattr(images, "convolution_dtype", lambda device: torch.float32)
    exact = loss_of(model, batch, noise)
    torch.testing.assert_close(rough.total, exact.total, rtol=0.02, atol=0.0)
