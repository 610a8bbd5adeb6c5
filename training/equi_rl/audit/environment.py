# SPDX-License-Identifier: MIT
"""Measures how far a task violates each of the four conditions of a group-invariant POMDP.

    transition        T(g s, g a, g s') = T(s, a, s')    run twins: s with a's, g s with g a's
    reward            R(g s, g a) = R(s, a)              the same twins
    observation       O(g a, g s', g o) = O(a, s', o)    put the task into s' and into g s'
    initial belief    b_0(g s) = b_0(s)                  compare drawn starts with transformed ones

The first three are differences (0 is perfect). The last is a comparison of two samples: the energy
distance between them, and the share of random relabellings that give a larger one (p-value). A
small p-value says that the start distribution is not symmetric; a large one only that n starts do
not show it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from equi_rl.audit.task import AuditError, AuditStep, AuditTask
from equi_rl.nets.symmetry import Element

_PERMUTATIONS = 199


@dataclass
class Differences:
    """Collected absolute differences of one quantity."""

    values: list[float] = field(default_factory=list)

    def add(self, difference: np.ndarray | float) -> None:
        """Add the largest absolute component."""
        self.values.append(float(np.max(np.abs(difference), initial=0.0)))

    @property
    def mean(self) -> float:
        """Mean over what was compared; NaN if nothing was."""
        return float(np.mean(self.values)) if self.values else float("nan")

    @property
    def median(self) -> float:
        """Median over what was compared."""
        return float(np.median(self.values)) if self.values else float("nan")

    @property
    def largest(self) -> float:
        """Largest difference."""
        return max(self.values, default=float("nan"))


@dataclass(frozen=True)
class ElementAudit:
    """The four conditions for one group element.

    Attributes:
        element: g.
        transition: differences after each step, per named group of features.
        reward: differences of the reward at each step.
        endings_differ: steps at which only one of the twins ended.
        steps: steps compared.
        observation: mean absolute difference per observation.
        observation_largest: largest difference of a single number per observation.
        belief_distance: energy distance between drawn and transformed starts.
        belief_p_value: share of relabellings with a larger distance.
        starts: starts on each side of that comparison.
    """

    element: Element
    transition: dict[str, Differences]
    reward: Differences
    endings_differ: int
    steps: int
    observation: Differences
    observation_largest: Differences
    belief_distance: float
    belief_p_value: float
    starts: int


def audit_environment(
    task: AuditTask,
    episodes: int = 20,
    steps: int = 10,
    starts: int = 200,
    seed: int = 0,
    progress: Callable[[], None] = lambda: None,
) -> list[ElementAudit]:
    """Audit every element except the identity; ``progress`` is called once per episode."""
    for name, value in (("episodes", episodes), ("steps", steps)):
        if value < 1:
            raise AuditError(f"{name} = {value}; must be at least 1")
    if starts < 20:
        raise AuditError(f"starts = {starts}; comparing distributions needs at least 20")
    elements = [g for g in task.group if g.rotation or g.mirror]
    return [_audit_element(task, g, episodes, steps, starts, seed, progress) for g in elements]


def energy_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Energy distance between samples (n, d) and (m, d): 0 iff the distributions agree."""
    pooled = np.concatenate([first, second])
    return _energy(_distances(pooled), np.arange(len(pooled)) < len(first))


def permutation_p_value(
    first: np.ndarray, second: np.ndarray, rng: np.random.Generator
) -> tuple[float, float]:
    """Energy distance and its p-value under random relabelling."""
    pooled = np.concatenate([first, second])
    distances = _distances(pooled)
    labels = np.arange(len(pooled)) < len(first)
    observed = _energy(distances, labels)
    larger = sum(
        _energy(distances, rng.permutation(labels)) >= observed for _ in range(_PERMUTATIONS)
    )
    return observed, (1 + larger) / (1 + _PERMUTATIONS)


def _audit_element(
    task: AuditTask,
    g: Element,
    episodes: int,
    steps: int,
    starts: int,
    seed: int,
    progress: Callable[[], None],
) -> ElementAudit:
    transition: dict[str, Differences] = {}
    reward, observation, largest = Differences(), Differences(), Differences()
    endings, compared = 0, 0
    for episode in range(episodes):
        rng = np.random.default_rng([seed, episode])
        first = task.sample_start(rng)
        actions = [task.sample_action(rng) for _ in range(steps)]
        plain = _rollout(task, first, actions)
        rotated = _rollout(
            task,
            task.transform_state(g, first),
            [task.transform_action(g, action) for action in actions],
        )
        for one, two in zip(plain, rotated, strict=False):
            compared += 1
            reward.add(two.reward - one.reward)
            endings += one.ended != two.ended
            expected = task.features(task.transform_state(g, one.state))
            for name, value in task.features(two.state).items():
                transition.setdefault(name, Differences()).add(value - expected[name])
        for state in (first, plain[-1].state):
            seen = task.start(task.transform_state(g, state))
            difference = seen - task.transform_observation(g, task.start(state))
            observation.add(float(np.mean(np.abs(difference))))
            largest.add(difference)
        progress()
    distance, p_value = _belief(task, g, starts, seed)
    return ElementAudit(
        g,
        transition,
        reward,
        endings,
        compared,
        observation,
        largest,
        distance,
        p_value,
        starts,
    )


def _rollout(task: AuditTask, state: object, actions: list[Any]) -> list[AuditStep]:
    task.start(state)
    results = []
    for action in actions:
        results.append(task.step(action))
        if results[-1].ended:
            break
    return results


def _belief(task: AuditTask, g: Element, starts: int, seed: int) -> tuple[float, float]:
    # Two independent samples: comparing a sample with its own image would hide nothing but also
    # make the two sides dependent, which the test does not allow for.
    rng = np.random.default_rng([seed, 1_000_003])
    drawn = [task.features(task.sample_start(rng)) for _ in range(starts)]
    moved = [task.features(task.transform_state(g, task.sample_start(rng))) for _ in range(starts)]
    first, second = (np.stack([np.concatenate([*f.values()]) for f in s]) for s in (drawn, moved))
    spread = np.concatenate([first, second]).std(axis=0)
    used = spread > 1e-12
    if not used.any():
        return 0.0, 1.0
    return permutation_p_value(first[:, used] / spread[used], second[:, used] / spread[used], rng)


def _distances(points: np.ndarray) -> np.ndarray:
    squares = (points**2).sum(axis=1)
    squared = squares[:, None] + squares[None, :] - 2.0 * points @ points.T
    return np.sqrt(np.maximum(squared, 0.0))


def _energy(distances: np.ndarray, in_first: np.ndarray) -> float:
    weights = np.where(in_first, 1.0 / in_first.sum(), -1.0 / (~in_first).sum())
    return float(-weights @ distances @ weights)
