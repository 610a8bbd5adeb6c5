# SPDX-License-Identifier: MIT
"""The auditor finds exactly the condition that a tiny world violates."""

from __future__ import annotations

import numpy as np
import pytest

from equi_rl.audit.environment import audit_environment, energy_distance, permutation_p_value
from equi_rl.audit.task import AuditError, AuditStep, audit_task
from equi_rl.carflag.audit import ADAPTERS
from equi_rl.nets.symmetry import Element, group_named

CELLS = 8


class Ring:
    """A walk on eight cells in a circle; a quarter turn moves two. ``broken`` spoils one law."""

    def __init__(self, broken: str = "") -> None:
        self.group = group_named("C4")
        self.broken = broken
        self.cell = 0

    def sample_start(self, rng):
        return int(rng.integers(CELLS // 2 if self.broken == "belief" else CELLS))

    def start(self, state):
        self.cell = state
        return self._observe()

    def sample_action(self, rng):
        return int(rng.choice([-1, 1]))

    def step(self, action):
        stuck = self.broken == "transition" and self.cell == 3
        self.cell = self.cell if stuck else (self.cell + action) % CELLS
        even = self.cell % 2 == 0
        reward = float(self.cell == 0 if self.broken == "reward" else even)
        return AuditStep(self.cell, self._observe(), reward, False)

    def transform_state(self, g: Element, state):
        return (state + 2 * g.rotation) % CELLS

    def transform_action(self, g, action):
        return action

    def transform_observation(self, g, observation):
        return np.roll(observation, 2 * g.rotation)

    def features(self, state):
        angle = 2 * np.pi * state / CELLS
        return {"place": np.array([np.cos(angle), np.sin(angle)])}

    def _observe(self):
        image = np.eye(CELLS)[self.cell]
        if self.broken == "observation" and self.cell == 5:
            image = image * 0.5
        return image


def violations(task):
    found = set()
    for audit in audit_environment(task, episodes=20, steps=12, starts=200):
        if max(item.largest for item in audit.transition.values()) > 1e-9:
            found.add("transition")
        if audit.reward.largest > 1e-9:
            found.add("reward")
        if audit.observation_largest.largest > 1e-9:
            found.add("observation")
        if audit.belief_p_value < 0.01:
            found.add("belief")
    return found


@pytest.mark.parametrize("broken", ["reward", "observation", "belief"])
def test_exactly_the_broken_condition_is_found(broken):
    assert violations(Ring(broken)) == {broken}


def test_a_symmetric_world_has_no_violation():
    assert violations(Ring()) == set()


def test_a_broken_transition_is_found_and_spoils_only_what_follows_from_it():
    # Twins that have parted also earn different rewards; observation and belief are unaffected.
    found = violations(Ring("transition"))
    assert "transition" in found
    assert found <= {"transition", "reward"}


def test_the_energy_distance_of_two_points_is_twice_their_distance():
    zero, one = np.zeros((1, 1)), np.full((1, 1), 3.0)
    assert energy_distance(zero, one) == pytest.approx(6.0)
    assert energy_distance(zero, zero) == pytest.approx(0.0)


def test_p_values_are_not_small_for_equal_distributions():
    values = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first, second = rng.normal(size=(2, 60, 3))
        values.append(permutation_p_value(first, second, rng)[1])
    assert 0.2 < np.mean(values) < 0.8


@pytest.mark.parametrize(
    ("env_id", "group", "offset", "expected"),
    [
        ("equi/CarFlag1D-v0", "flip", 0, set()),
        ("equi/CarFlag1D-v0", "flip", 10, {"observation"}),
        ("equi/CarFlag2D-v0", "C4", 0, set()),
        ("equi/CarFlag2D-v0", "C4", 2, {"observation", "belief"}),
    ],
)
def test_offset_information_breaks_the_grid_worlds(env_id, group, offset, expected):
    task = audit_task(env_id, group, ADAPTERS, offset=offset)
    audits = audit_environment(task, episodes=120, steps=20, starts=400)
    found = set()
    for audit in audits:
        assert max(item.largest for item in audit.transition.values()) < 1e-9
        assert audit.reward.largest < 1e-9
        if audit.observation_largest.largest > 1e-9:
            found.add("observation")
        if audit.belief_p_value < 0.006:
            found.add("belief")
    assert found >= expected
    assert found <= expected | ({"belief"} if offset else set())


def test_environments_without_a_group_action_are_refused():
    with pytest.raises(AuditError, match="no audit_task"):
        audit_task("CartPole-v1", "C4", ADAPTERS)
    with pytest.raises(AuditError, match="cannot be made"):
        audit_task("equi/Nowhere-v0", "C4", ADAPTERS)
    with pytest.raises(AuditError, match="does not act on a line"):
        audit_task("equi/CarFlag1D-v0", "C4", ADAPTERS)
    with pytest.raises(AuditError, match="use 'C4'"):
        audit_task("equi/CarFlag2D-v0", "D4", ADAPTERS)


@pytest.mark.parametrize(
    ("options", "named"), [({"episodes": 0}, "episodes"), ({"starts": 5}, "starts")]
)
def test_too_few_samples_are_refused(options, named):
    with pytest.raises(AuditError, match=named):
        audit_environment(Ring(), **options)
