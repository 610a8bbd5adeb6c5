# SPDX-License-Identifier: MIT
"""Tables about networks: parameter counts, and errors before and after training."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from equi_rl.agents.sac import SacUpdate
from equi_rl.data.episode_batch import random_batch
from equi_rl.nets.agent import agent_configs
from equi_rl.nets.config import Combination, NetworkConfig
from equi_rl.nets.config import reference_config as reference
from equi_rl.nets.equivariance import ElementError, actor_errors, critic_errors
from equi_rl.nets.layers import count_parameters
from equi_rl.nets.networks import Actor, Critic

_TRAINING_LENGTHS = (12, 10, 6, 3)  # short episodes: what counts is that the weights have moved


@dataclass(frozen=True)
class ParameterRow:
    """Trainable numbers of one variant; parts are those of the actor."""

    variant: str
    actor: int
    """The whole network where actor and critic share it."""
    critic: int
    """0 where the critic is a head of the actor's network."""
    encoder: int
    lstm: int


@dataclass(frozen=True)
class TrainingRow:
    """Largest errors of one variant; ``exact`` elements move pixels without interpolation."""

    variant: str
    output: str
    exact_before: float
    exact_after: float
    other_before: float | None
    other_after: float | None
    scale: float


def parameter_table() -> list[ParameterRow]:
    """Parameter counts of every variant that the paper compares on robot tasks."""
    rows = []
    c4 = reference("C4")
    for combination in Combination:
        for match in ("channels", "parameters"):
            uses_twin = combination not in (Combination.EQUIVARIANT, Combination.PLAIN_LSTM)
            if match == "parameters" and not uses_twin:
                continue
            name = f"C4 {combination.value}" + (f", same {match}" if uses_twin else "")
            rows.append(_row(name, *agent_configs(combination, c4, match)))
    for group in ("D4", "C8", "D8"):
        rows.append(_row(f"{group} equivariant, same fields", reference(group), reference(group)))
        slim = reference(group, "channels")
        rows.append(_row(f"{group} equivariant, same channels", slim, slim))
    return rows


def training_table(
    config: NetworkConfig, updates: int, combination: str = "equivariant", seed: int = 0
) -> list[TrainingRow]:
    """Errors of actor and critic before and after ``updates`` real SAC updates on random data."""
    torch.manual_seed(seed)
    actor_config, critic_config = agent_configs(combination, config)
    actor, critic = Actor(actor_config), Critic(critic_config)
    before = _all_errors(actor, critic, seed)
    learner = SacUpdate(actor, critic)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(updates):
        batch = random_batch(config.observation_size, _TRAINING_LENGTHS, generator)
        learner.step(batch, generator)
    after = _all_errors(actor, critic, seed)
    name = f"{config.group} {combination}"
    return [
        TrainingRow(
            name,
            output,
            _largest(before[output], True) or 0.0,
            _largest(after[output], True) or 0.0,
            _largest(before[output], False),
            _largest(after[output], False),
            after[output][0].scale,
        )
        for output in before
    ]


def _all_errors(actor: Actor, critic: Critic, seed: int) -> dict[str, list[ElementError]]:
    return {
        "mean": actor_errors(actor, episodes=2, seed=seed),
        "log-std": actor_errors(actor, episodes=2, seed=seed, output="log_std"),
        "value": critic_errors(critic, episodes=2, seed=seed),
    }


def _largest(errors: list[ElementError], exact: bool) -> float | None:
    values = [
        error.largest
        for error in errors
        if error.exact_on_pixels is exact and (error.element.rotation or error.element.mirror)
    ]
    return max(values, default=None)


def _row(name: str, actor_config: NetworkConfig, critic_config: NetworkConfig) -> ParameterRow:
    actor, critic = Actor(actor_config), Critic(critic_config)
    return ParameterRow(
        name,
        count_parameters(actor),
        count_parameters(critic),
        count_parameters(actor.history.encoder),
        count_parameters(actor.history.lstm),
    )
