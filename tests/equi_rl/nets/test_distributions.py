# SPDX-License-Identifier: MIT
"""The squashed Gaussian: density by quadrature and finite differences, and its symmetry."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from equi_rl.nets import symmetry
from equi_rl.nets.distributions import log_slope, sample, squash
from equi_rl.nets.symmetry import group_named


@pytest.mark.parametrize("kind", ["tanh", "radial"])
def test_the_slope_is_the_jacobian_determinant(kind):
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        raw = torch.randn(5, generator=generator, dtype=torch.float64)
        jacobian = torch.autograd.functional.jacobian(lambda u: squash(u, kind), raw)
        expected = torch.linalg.slogdet(jacobian).logabsdet
        torch.testing.assert_close(log_slope(raw, kind), expected, atol=1e-8, rtol=1e-8)


def test_the_density_agrees_with_a_standard_transformed_distribution():
    torch.manual_seed(0)
    mean, log_std = torch.randn(20, 5), torch.randn(20, 5) * 0.3
    noise = torch.randn(20, 5)
    action, density = sample(mean, log_std, noise, "tanh")
    base = torch.distributions.Normal(mean, log_std.exp())
    reference = torch.distributions.TransformedDistribution(
        base, [torch.distributions.TanhTransform(cache_size=1)]
    )
    torch.testing.assert_close(
        density, reference.log_prob(action).sum(dim=-1), atol=2e-3, rtol=1e-3
    )


def test_saturated_actions_keep_a_finite_density_and_gradient():
    mean = torch.full((1, 5), 30.0, requires_grad=True)
    _, density = sample(mean, torch.zeros(1, 5), torch.zeros(1, 5), "tanh")
    density.sum().backward()
    assert torch.isfinite(density).all()
    assert mean.grad is not None
    assert (mean.grad.abs() > 1.0).all()


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["C4", "D4", "C8", "D8"]), st.data())
def test_density_of_the_turned_action_under_the_turned_policy_is_unchanged(name, data):
    group = group_named(name)
    g = data.draw(st.sampled_from(group.elements))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    mean, noise = (torch.randn(5, generator=generator, dtype=torch.float64) for _ in range(2))
    log_std = torch.randn(5, generator=generator, dtype=torch.float64) * 0.5
    kind = "tanh" if group.permutes_axes else "radial"
    if kind == "radial":
        log_std[2] = log_std[1]
    action, density = sample(mean, log_std, noise, kind)
    turned_mean = symmetry.transform_action(group, g, mean)
    turned_log_std = symmetry.transform_log_std(group, g, log_std)
    wanted = symmetry.transform_action(group, g, action)
    # the noise that leads to the rotated action under the rotated policy
    turned_noise = symmetry.transform_action(group, g, noise * log_std.exp()) / turned_log_std.exp()
    found, turned_density = sample(turned_mean, turned_log_std, turned_noise, kind)
    torch.testing.assert_close(found, wanted, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(turned_density, density, atol=1e-9, rtol=1e-9)


def test_a_per_component_squash_is_not_exact_for_eighth_turns():
    group = group_named("C8")
    raw = torch.tensor([0.0, 1.5, 0.2, 0.0, 0.0], dtype=torch.float64)
    g = group.elements[1]
    rotated = squash(symmetry.transform_action(group, g, raw), "tanh")
    expected = symmetry.transform_action(group, g, squash(raw, "tanh"))
    assert (rotated - expected).abs().max() > 0.05
