# SPDX-License-Identifier: MIT
"""The package equi_models: what the folder models/ holds is installed, whole and readable."""

from __future__ import annotations

from pathlib import Path

import pytest

from equi_core.contract import PolicyContract
from equi_core.locations.folders import share_folders

MODELS = Path(__file__).resolve().parents[2] / "models"
NAMES = sorted(path.parent.name for path in MODELS.glob("*/contract.json"))


def test_there_is_a_model_for_every_task() -> None:
    assert NAMES == ["block_picking", "block_pulling", "block_pushing", "drawer_opening"]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_installed_as_it_lies_in_the_repository(name: str) -> None:
    installed = next(
        folder / name
        for folder in share_folders("equi_models", "models")
        if (folder / name).is_dir()
    )
    for part in ("contract.json", "policy.safetensors", "MODEL_CARD.md"):
        assert (installed / part).read_bytes() == (MODELS / name / part).read_bytes()
    assert PolicyContract.load(installed / "contract.json").task == name
