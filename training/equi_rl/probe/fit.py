# SPDX-License-Identifier: MIT
"""Fits a probe to episodes, and says how well it tells the two objects apart, moment by moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import rankdata

from equi_core.belief.probe import (
    PARTS,
    BeliefProbe,
    PlaneBasis,
    ProbeError,
    group_matrices,
    regular_features,
)
from equi_core.belief.probe_file import LagResult
from equi_rl.probe.episodes import ProbeEpisode

FloatArray = NDArray[np.float64]

BEFORE = "before contact"
LARGEST_LAG = 5
_RIDGES = (0.3, 3.0, 30.0, 300.0)
_FOLDS = 4
_ITERATIONS = 200


@dataclass(frozen=True, eq=False)
class _Samples:
    """Differences of the two objects' features, and which of them is movable."""

    features: FloatArray
    """(N, fields * functions): of the first object minus the second."""
    labels: FloatArray
    """(N,) +1 if the first object is the movable one, else -1."""
    seeds: NDArray[np.int64]


def fit_probe(
    episodes: Sequence[ProbeEpisode],
    group: str,
    parts: tuple[str, ...] = PARTS,
    basis: PlaneBasis | None = None,
) -> BeliefProbe:
    """Logistic regression with a ridge that is chosen on scenes left out.

    Raises:
        ProbeError: there are too few scenes.
    """
    basis = basis or PlaneBasis()
    if len({episode.seed for episode in episodes}) < _FOLDS:
        raise ProbeError(f"at least {_FOLDS} scenes are needed to fit a probe")
    samples = _samples(episodes, group, parts, basis)
    # Fields differ in size by far; the ridge should not prefer the large ones.
    scale = np.sqrt(np.mean(samples.features**2, axis=0)) + 1e-6
    scaled = _Samples(samples.features / scale, samples.labels, samples.seeds)
    losses = {ridge: _left_out_loss(scaled, ridge) for ridge in _RIDGES}
    weights = _regress(scaled.features, scaled.labels, min(losses, key=losses.__getitem__)) / scale
    channels = episodes[0].states.shape[1] // len(PARTS)
    return BeliefProbe(group, parts, channels, basis, weights.reshape(-1, basis.count))


def results_of(probe: BeliefProbe, episodes: Sequence[ProbeEpisode]) -> tuple[LagResult, ...]:
    """Area under the ROC curve before the first contact, and so many steps after it.

    An episode that is over by then counts with its last belief: those that go on are mostly the
    ones in which the immovable object was tried first, and alone they would flatter the probe.
    """
    moments: dict[str, list[tuple[float, int, bool]]] = {BEFORE: []}
    moments |= {_after(lag): [] for lag in range(LARGEST_LAG + 1)}
    for episode in episodes:
        last = len(episode.states) - 1
        for index in range(min(episode.contact_step, last + 1)):
            moments[BEFORE].append(_row(probe, episode, index))
        if episode.contact_step <= last:
            for lag in range(LARGEST_LAG + 1):
                index = min(episode.contact_step + lag, last)
                moments[_after(lag)].append(_row(probe, episode, index))
    results = []
    for name, found in moments.items():
        if found:
            # Seen from the movable object the logit should be positive, from the other negative.
            logits = np.array([row[0] for row in found])
            scores = np.concatenate([logits, -logits])
            labels = np.repeat([True, False], len(logits))
            played = {row[1:] for row in found}
            auc = area_under_roc(scores, labels)
            results.append(LagResult(name, round(auc, 4), len(found), len(played)))
    return tuple(results)


def _row(probe: BeliefProbe, episode: ProbeEpisode, index: int) -> tuple[float, int, bool]:
    """Logit in favour of the movable object, and which episode it is of."""
    state = _state(episode, index, probe.parts)
    first, second = probe.score(state, episode.places_m[index])
    logit = float(first - second) * (1.0 if episode.movable == 0 else -1.0)
    return logit, episode.seed, episode.swapped


def area_under_roc(scores: FloatArray, labels: NDArray[np.bool_]) -> float:
    """Chance that a positive has the higher score than a negative; ties count half."""
    positive = int(labels.sum())
    negative = len(labels) - positive
    if not positive or not negative:
        raise ProbeError("an AUC needs positives and negatives")
    # Twins before contact have equal states; rounding must not decide between them.
    ranks = rankdata(np.round(scores, 9))
    won = float(ranks[labels].sum()) - positive * (positive + 1) / 2
    return won / (positive * negative)


def _after(lag: int) -> str:
    return f"contact + {lag}"


def _state(episode: ProbeEpisode, index: int, parts: tuple[str, ...]) -> NDArray[np.float32]:
    channels = episode.states.shape[1] // len(PARTS)
    pieces = [episode.states[index, PARTS.index(part) * channels :][:channels] for part in parts]
    return np.concatenate(pieces)


def _samples(
    episodes: Sequence[ProbeEpisode], group: str, parts: tuple[str, ...], basis: PlaneBasis
) -> _Samples:
    matrices = group_matrices(group)
    features, labels, seeds = [], [], []
    for episode in episodes:
        sign = 1.0 if episode.movable == 0 else -1.0
        for index in range(len(episode.states)):
            fields = _state(episode, index, parts).astype(np.float64).reshape(-1, len(matrices))
            seen = regular_features(fields, episode.places_m[index], basis, matrices)
            features.append((seen[0] - seen[1]).ravel())
            labels.append(sign)
            seeds.append(episode.seed)
    return _Samples(np.array(features), np.array(labels), np.array(seeds))


def _left_out_loss(samples: _Samples, ridge: float) -> float:
    """Mean logistic loss on scenes that a fit has not seen; twins stay together."""
    scenes = np.unique(samples.seeds)
    total = 0.0
    for fold in range(_FOLDS):
        out = np.isin(samples.seeds, scenes[fold::_FOLDS])
        weights = _regress(samples.features[~out], samples.labels[~out], ridge)
        total += float(
            np.logaddexp(0.0, -samples.labels[out] * (samples.features[out] @ weights)).sum()
        )
    return total / len(samples.labels)


def _regress(features: FloatArray, labels: FloatArray, ridge: float) -> FloatArray:
    def loss(weights: FloatArray) -> tuple[float, FloatArray]:
        margins = labels * (features @ weights)
        # d/dm log(1 + exp(-m)) = -1 / (1 + exp(m))
        pull = -labels * np.exp(-np.logaddexp(0.0, margins))
        value = float(np.logaddexp(0.0, -margins).sum()) + 0.5 * ridge * float(weights @ weights)
        gradient: FloatArray = features.T @ pull + ridge * weights
        return value, gradient

    start = np.zeros(features.shape[1])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS})
    weights: FloatArray = found.x
    return weights
