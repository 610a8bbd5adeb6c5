# SPDX-License-Identifier: MIT
"""Fitting: what is in the memory is found, what is not is not, and twins agree before contact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from equi_core.belief.probe_file import StoredProbe
from equi_rl.cli.probe import main
from equi_rl.envs import make_env
from equi_rl.export.exporter import load_policy
from equi_rl.probe.episodes import ProbeEpisode, play_pair
from equi_rl.probe.fit import BEFORE, area_under_roc, fit_probe, results_of

CHANNELS = 16
STEPS, CONTACT = 6, 3


def episode(seed: int, swapped: bool, remembers: bool) -> ProbeEpisode:
    """A made-up memory: after contact one regular field points to the movable object."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-0.2, 0.2, (2, 2))
    movable = int(rng.integers(2)) ^ int(swapped)
    states = rng.normal(size=(STEPS, 2 * CHANNELS))
    if remembers:
        way = places[movable]
        axes = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
        states[CONTACT:, 8:12] += 8.0 * axes @ (way / np.linalg.norm(way))
    return ProbeEpisode(
        seed,
        swapped,
        states.astype(np.float32),
        np.repeat(places[None], STEPS, axis=0),
        movable,
        CONTACT,
        True,
    )


def pairs(seeds: range, remembers: bool) -> list[ProbeEpisode]:
    return [episode(seed, twin, remembers) for seed in seeds for twin in (False, True)]


@pytest.mark.parametrize("remembers", [True, False])
def test_a_memory_is_found_exactly_if_there_is_one(remembers: bool) -> None:
    probe = fit_probe(pairs(range(100, 160), remembers), "C4")
    found = {line.moment: line for line in results_of(probe, pairs(range(60), remembers))}
    assert found[BEFORE].auc == pytest.approx(0.5, abs=1e-9), "twins are equal before contact"
    assert (found[BEFORE].samples, found[BEFORE].episodes) == (360, 120)
    after = found["contact + 2"].auc
    assert after > 0.97 if remembers else after == pytest.approx(0.5, abs=1e-9)


def test_the_auc_is_that_of_the_rank_test_ties_included() -> None:
    rng = np.random.default_rng(1)
    labels = rng.random(200) < 0.4
    scores = np.round(rng.normal(size=200) + labels, 1)
    statistic = mannwhitneyu(scores[labels], scores[~labels]).statistic
    expected = statistic / (labels.sum() * (~labels).sum())
    assert area_under_roc(scores, labels) == pytest.approx(expected, abs=1e-12)


@pytest.fixture(scope="module")
def picking(repository_root: Path) -> Path:
    return repository_root / "models" / "block_picking"


@pytest.mark.parametrize(
    "seed",
    [pytest.param(900_700_000, id="a-grasp"), pytest.param(900_000_049, id="a-graze-of-0.6-mm")],
)
def test_twins_of_a_shipped_policy_are_the_same_until_something_is_touched(
    picking: Path, seed: int
) -> None:
    contract, _, policy = load_policy(picking)
    env = make_env(contract.task, contract=contract)
    try:
        one, other = play_pair(env, policy, seed)
    finally:
        env.close()
    assert one.movable != other.movable
    assert one.contact_step == other.contact_step < len(one.states)
    touched = one.contact_step
    np.testing.assert_array_equal(one.states[:touched], other.states[:touched])
    np.testing.assert_array_equal(one.places_m[:touched], other.places_m[:touched])


def test_a_policy_without_symmetric_memory_and_a_stranger_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 2
    assert "is not a model folder; export the policy first" in capsys.readouterr().err


def test_few_scenes_are_refused_before_anything_is_played(
    picking: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(picking), "--fit-scenes", "2", "--out", str(tmp_path)]
    assert main(words) == 2
    assert "--fit-scenes must be at least 4" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "task", ["block_picking", "block_pulling", "block_pushing", "drawer_opening"]
)
def test_the_shipped_probe_belongs_to_its_model_and_its_table_is_whole(
    repository_root: Path, task: str
) -> None:
    folder = repository_root / "models" / task
    contract, _, _ = load_policy(folder)
    stored = StoredProbe.load(folder, contract)
    assert stored is not None
    found = {line.moment: line for line in stored.results}
    assert found[BEFORE].auc <= 0.55
    assert found[BEFORE].episodes == 400
    assert f"{found['contact + 2'].auc:.3f}" in (folder / "PROBE_CARD.md").read_text()
