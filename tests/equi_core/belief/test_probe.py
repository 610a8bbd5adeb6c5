# SPDX-License-Identifier: MIT
"""The probe: linear in the state, turns with the scene, and knows its model."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from equi_core.belief.probe import BeliefProbe, PlaneBasis, ProbeError, group_matrices
from equi_core.belief.probe_file import PROBE_FILE, LagResult, StoredProbe
from equi_core.contract import PolicyContract

CHANNELS = 16
QUARTER = np.array([[0.0, -1.0], [1.0, 0.0]])
RNG = np.random.default_rng(7)


def probe_of(group: str) -> BeliefProbe:
    basis = PlaneBasis()
    fields = 2 * CHANNELS // len(group_matrices(group))
    weights = np.random.default_rng(3).normal(size=(fields, basis.count))
    return BeliefProbe(group, ("hidden", "cell"), CHANNELS, basis, weights)


def turned(state: np.ndarray) -> np.ndarray:
    """A quarter turn of C4's regular fields, written out: every field moves on by one place."""
    return np.roll(state.reshape(-1, 4), 1, axis=1).ravel()


def test_the_belief_of_a_turned_scene_turns_exactly() -> None:
    probe = probe_of("C4")
    for _ in range(50):
        state, places = RNG.normal(size=2 * CHANNELS), RNG.uniform(-0.2, 0.2, (7, 2))
        score = probe.score(state, places)
        for _turn in range(4):
            state, places = turned(state), places @ QUARTER.T
            np.testing.assert_allclose(probe.score(state, places), score, rtol=0, atol=1e-12)


@pytest.mark.parametrize("group", ["C4", "C8", "D4", "D8"])
def test_it_turns_by_every_element_of_its_group(group: str) -> None:
    symmetry = pytest.importorskip("equi_rl.nets.symmetry")
    declared = symmetry.group_named(group)
    probe = probe_of(group)
    state, places = RNG.normal(size=2 * CHANNELS), RNG.uniform(-0.2, 0.2, (5, 2))
    score = probe.score(state, places)
    for element in declared:
        moved = symmetry.transform_regular(declared, element, state)
        at = places @ declared.plane_matrix(element).T
        np.testing.assert_allclose(probe.score(moved, at), score, atol=1e-12)


def test_a_turn_of_the_state_alone_changes_the_belief() -> None:
    probe, state = probe_of("C4"), RNG.normal(size=2 * CHANNELS)
    places = np.array([[0.1, 0.0], [-0.05, 0.1]])
    assert abs(probe.belief(turned(state), places)[0] - probe.belief(state, places)[0]) > 1e-3


def test_the_score_is_linear_in_the_state() -> None:
    probe, places = probe_of("C4"), RNG.uniform(-0.2, 0.2, (3, 2))
    one, other = RNG.normal(size=(2, 2 * CHANNELS))
    np.testing.assert_allclose(
        probe.score(2.0 * one - 3.0 * other, places),
        2.0 * probe.score(one, places) - 3.0 * probe.score(other, places),
        atol=1e-10,
    )


def test_beliefs_sum_to_one_and_follow_the_objects_not_their_order() -> None:
    probe, state = probe_of("C4"), RNG.normal(size=2 * CHANNELS)
    places = np.array([[0.1, 0.02], [-0.05, 0.1]])
    belief = probe.belief(state, places)
    assert belief.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(probe.belief(state, places[::-1]), belief[::-1])


def test_at_the_start_of_an_episode_nothing_is_believed() -> None:
    belief = probe_of("C4").belief(np.zeros(2 * CHANNELS), [[0.1, 0.0], [0.0, -0.1]])
    np.testing.assert_allclose(belief, [0.5, 0.5])


def test_a_state_of_another_size_is_refused() -> None:
    with pytest.raises(ProbeError, match="of another policy"):
        probe_of("C4").score(np.zeros(12), [[0.0, 0.0]])


@pytest.mark.parametrize("group", ["SO2", "C0", "", "flip"])
def test_a_group_without_regular_fields_on_the_plane_is_refused(group: str) -> None:
    with pytest.raises(ProbeError, match="C_n and D_n"):
        group_matrices(group)


CONTRACT = PolicyContract(task="block_picking", weights_sha256="ab" * 32)


def stored() -> StoredProbe:
    probe = probe_of("C4")
    return StoredProbe(
        task="block_picking",
        contract_sha256=CONTRACT.sha256,
        weights_sha256=CONTRACT.weights_sha256,
        group="C4",
        parts=probe.parts,
        channels=CHANNELS,
        widths_m=probe.basis.widths_m,
        weights=tuple(tuple(row) for row in probe.weights.tolist()),
        fitted_seeds=(5, 9),
        tested_seeds=(0, 4),
        results=(LagResult("before contact", 0.5, 10, 2),),
    )


def test_what_was_saved_is_loaded_and_scores_the_same(tmp_path: Path) -> None:
    stored().save(tmp_path)
    loaded = StoredProbe.load(tmp_path, CONTRACT)
    assert loaded == stored()
    state, places = RNG.normal(size=2 * CHANNELS), RNG.uniform(-0.2, 0.2, (3, 2))
    np.testing.assert_array_equal(
        loaded.probe.score(state, places), stored().probe.score(state, places)
    )


def test_a_model_without_a_probe_has_none(tmp_path: Path) -> None:
    assert StoredProbe.load(tmp_path, CONTRACT) is None


def test_a_probe_of_another_model_is_refused_in_one_sentence(tmp_path: Path) -> None:
    stored().save(tmp_path)
    other = dataclasses.replace(CONTRACT, weights_sha256="cd" * 32)
    with pytest.raises(ProbeError, match=r"is a probe of another model .*; run equi-probe"):
        StoredProbe.load(tmp_path, other)


@pytest.mark.parametrize("field", ["weights", "group", "channels", "results", "tested_seeds"])
def test_a_changed_probe_is_refused(tmp_path: Path, field: str) -> None:
    path = stored().save(tmp_path)
    data = json.loads(path.read_text())
    data[field] = {
        "weights": [[0.0] * len(row) for row in data["weights"]],
        "group": "C8",
        "channels": 32,
        "results": [],
        "tested_seeds": [0, 400],
    }[field]
    path.write_text(json.dumps(data))
    with pytest.raises(ProbeError, match="was changed after it was fitted"):
        StoredProbe.load(tmp_path, CONTRACT)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"task": 3}', "\x00"])
def test_what_is_no_probe_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / PROBE_FILE).write_text(text)
    with pytest.raises(ProbeError, match=r"probe\.json"):
        StoredProbe.load(tmp_path, CONTRACT)
