# SPDX-License-Identifier: MIT
"""The theorem behind the networks, on POMDPs small enough to be solved exactly.

If transition, reward, observation and initial belief are invariant under a group, then the optimal
value of histories is invariant, Q*(g h, g a) = Q*(h, a), and the optimal actions are equivariant.
Random POMDPs are made invariant by averaging over the group and solved by dynamic programming over
all histories; spoiling any one of the four conditions spoils the conclusion.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

HORIZON = 3
DISCOUNT = 0.9
Permutation = tuple[int, ...]
History = tuple[int, ...]  # o_0, a_0, o_1, a_1, ..., o_t

# Groups as permutations of four corners (in a circle) and a centre: states, actions and
# observations are such sets.
QUARTER: Permutation = (1, 2, 3, 0, 4)
MIRROR: Permutation = (1, 0, 3, 2, 4)
FLIP: Permutation = (1, 0, 2)


def generated(*generators: Permutation) -> list[Permutation]:
    identity = tuple(range(len(generators[0])))
    found = {identity}
    while True:
        more = {tuple(g[i] for i in h) for g in generators for h in found} | found
        if more == found:
            return sorted(found)
        found = more


GROUPS = {"C4": generated(QUARTER), "D4": generated(QUARTER, MIRROR), "flip": generated(FLIP)}


@dataclass
class Pomdp:
    """T[s, a, s'], R[s, a], O[a, s', o], b_0[s]; actions are the points except the centre."""

    transition: np.ndarray
    reward: np.ndarray
    observation: np.ndarray
    start: np.ndarray


def random_invariant_pomdp(group: list[Permutation], rng: np.random.Generator) -> Pomdp:
    points = len(group[0])
    actions = points - 1
    shapes = {
        "transition": (points, actions, points),
        "reward": (points, actions),
        "observation": (actions, points, points),
        "start": (points,),
    }
    arrays = {}
    for name, shape in shapes.items():
        values = rng.exponential(size=shape) ** 2
        # average over the group: every axis is permuted by the same element
        values = np.mean([values[np.ix_(*(g[:n] for n in shape))] for g in group], axis=0)
        if name != "reward":
            values /= values.sum(axis=-1, keepdims=True)
        arrays[name] = values
    return Pomdp(**arrays)


def solve(pomdp: Pomdp) -> dict[History, np.ndarray]:
    """Q*(h, .) for every history of at most HORIZON decisions, by recursion on the belief."""
    points, actions = pomdp.reward.shape
    values: dict[History, np.ndarray] = {}

    def visit(history: History, belief: np.ndarray, left: int) -> float:
        """Value of a history; ``belief`` is P(state | history)."""
        q = belief @ pomdp.reward
        if left > 1:
            for action in range(actions):
                arriving = belief @ pomdp.transition[:, action]
                for seen in range(points):
                    joint = arriving * pomdp.observation[action, :, seen]
                    chance = joint.sum()
                    following = visit((*history, action, seen), joint / chance, left - 1)
                    q[action] += DISCOUNT * chance * following
        values[history] = q
        return float(q.max())

    # The first observation is that of the start itself, seen without an action: here the state's
    # own observation under a fixed, invariant kernel (the average over actions).
    first = pomdp.observation.mean(axis=0)
    for seen in range(points):
        joint = pomdp.start * first[:, seen]
        visit((seen,), joint / joint.sum(), HORIZON)
    return values


def moved(g: Permutation, history: History) -> History:
    """G h: observations and actions are both points that g moves."""
    return tuple(g[item] for item in history)


def largest_violation(values: dict[History, np.ndarray], group: list[Permutation]) -> float:
    worst = 0.0
    for g, (history, q) in itertools.product(group, values.items()):
        rotated = values[moved(g, history)]
        worst = max(worst, float(np.abs(rotated[list(g[: len(q)])] - q).max()))
    return worst


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(sorted(GROUPS)), st.integers(0, 2**31))
def test_optimal_values_are_invariant_and_optimal_actions_equivariant(name, seed):
    group = GROUPS[name]
    values = solve(random_invariant_pomdp(group, np.random.default_rng(seed)))
    assert largest_violation(values, group) < 1e-10
    for g, (history, q) in itertools.product(group, values.items()):
        best = {a for a in range(len(q)) if q[a] > q.max() - 1e-9}
        rotated = values[moved(g, history)]
        best_rotated = {a for a in range(len(q)) if rotated[a] > rotated.max() - 1e-9}
        assert {g[a] for a in best} == best_rotated


@pytest.mark.parametrize("spoiled", ["transition", "reward", "observation", "start"])
def test_each_of_the_four_conditions_is_needed(spoiled):
    group = GROUPS["C4"]
    pomdp = random_invariant_pomdp(group, np.random.default_rng(0))
    array = getattr(pomdp, spoiled)
    array[..., 0] += 0.5  # favours one corner
    if spoiled != "reward":
        array /= array.sum(axis=-1, keepdims=True)
    assert largest_violation(solve(pomdp), group) > 1e-3


def test_an_equivariant_deterministic_optimal_policy_can_be_chosen():
    # Choose on one history of each orbit and carry the choice along; it must be optimal everywhere
    # and well defined: no element that fixes the history may move the choice.
    group = GROUPS["C4"]
    values = solve(random_invariant_pomdp(group, np.random.default_rng(1)))
    policy: dict[History, int] = {}
    for history, q in values.items():
        if history in policy:
            continue
        fixing = [g for g in group if moved(g, history) == history]
        allowed = [a for a in range(len(q)) if all(g[a] == a for g in fixing)]
        if not allowed:  # seen only from the fixed centre so far: every choice breaks the symmetry
            assert set(history[::2]) == {4}
            assert len(history) == 1
            continue
        choice = max(allowed, key=lambda a: q[a])
        assert q[choice] == pytest.approx(q.max())
        for g in group:
            policy[moved(g, history)] = g[choice]
    for history, action in policy.items():
        assert values[history][action] == pytest.approx(values[history].max())
        for g in group:
            assert policy[moved(g, history)] == g[action]
