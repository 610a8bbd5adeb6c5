# SPDX-License-Identifier: MIT
"""Law: what is said to be learned from reward is shown beside imitation alone and zero reward."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from equi_rl.results.robot_experiments import (
    COMPARED_SEEDS,
    HARD_TASKS,
    SEEDS,
    NamedRun,
    comparison,
    reward_runs,
)
from equi_rl.training.config import Preset
from equi_rl.training.presets import robot_run

CONTROLS = {"zero reward": "reward scale 0", "imitation alone": "teacher successes"}
"""What the published curves call them."""


LEARNING = {
    preset.value for preset in Preset if robot_run(HARD_TASKS[0], preset).learns_from_values
}


def missing_controls(rows: Iterable[Mapping[str, str]]) -> set[tuple[str, str, str, str]]:
    """(preset, task, seed, control) that published runs lack which learn from reward."""
    published = [row for row in rows if row["preset"] in LEARNING]
    found = {
        (row["preset"], row["task"], row["seed"], name)
        for row in published
        for name, words in CONTROLS.items()
        if words in row["overrides"]
    }
    return {
        (row["preset"], row["task"], row["seed"], name)
        for row in published
        if not row["overrides"] and row["task"] in HARD_TASKS
        for name in CONTROLS
    } - found


def test_the_published_curves_show_no_reward_without_its_controls(repository_root: Path) -> None:
    with open(repository_root / "training/docs/robot_curves.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert missing_controls(rows) == set()


def test_a_claim_without_its_control_would_be_found() -> None:
    claim = {"task": "block_pushing", "preset": "reward", "overrides": "", "seed": "0"}
    control = {**claim, "overrides": "asymmetric reward scale 0"}
    missing = ("reward", "block_pushing", "0", "imitation alone")
    assert missing_controls([claim, control]) == {missing}
    others = [{**claim, "preset": preset} for preset in ("brief", "deploy")]
    assert {preset for preset, *_ in missing_controls([claim, control, *others])} == LEARNING


@pytest.mark.parametrize(
    ("sweep", "seeds"), [(reward_runs, SEEDS), (comparison, COMPARED_SEEDS["equi-rsac"])]
)
def test_sweeps_train_every_control_with_the_claims_own_seeds(
    sweep: Callable[[], list[NamedRun]], seeds: tuple[int, ...]
) -> None:
    names = {name for name, _ in sweep()}
    for task in HARD_TASKS:
        for seed in seeds:
            for variant in ("as_it_is", "zero_reward", "own_successes"):
                assert f"{task}/equi-rsac/{variant}/seed-{seed}" in names


def test_shipped_policies_that_saw_no_reward_say_so(repository_root: Path) -> None:
    for card in sorted((repository_root / "models").glob("*/MODEL_CARD.md")):
        text = card.read_text()
        if ", ship, " in text:
            assert "No reward was used" in text, card


def test_shipped_policies_that_learned_from_reward_show_imitation_alone(
    repository_root: Path,
) -> None:
    for card in sorted((repository_root / "models").glob("*/MODEL_CARD.md")):
        text = card.read_text()
        if any(f", {preset}, " in text for preset in LEARNING):
            assert "| control, imitation alone: the same run" in text, card
