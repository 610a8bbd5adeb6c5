# SPDX-License-Identifier: MIT
"""Law: a model that was changed after export is refused, whatever was changed in it."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equi_core.contract import ContractError, PolicyContract
from equi_policy.deployed_policy import DeployedPolicy
from equi_policy.errors import PolicyError

TASKS = ("block_picking", "block_pulling", "block_pushing", "drawer_opening")


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all values in nested data."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)


def changed(value: Any) -> Any:
    """Another value of the same type, as near as can be."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return float(np.nextafter(value, 2 * abs(value) + 1))
    return f"{value[:-1]}{'0' if value[-1:] != '0' else '1'}"


@pytest.fixture(params=TASKS)
def model(request: Any, repository_root: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    shutil.copytree(repository_root / "models" / request.param, folder)
    return folder


def test_every_single_field_of_a_shipped_contract_is_covered(model: Path) -> None:
    path = model / "contract.json"
    original = path.read_text()
    accepted = []
    names = list(leaves(json.loads(original)))
    assert len(names) > 50
    for name in names:
        data = json.loads(original)
        parent = data
        for key in name[:-1]:
            parent = parent[key]
        parent[name[-1]] = changed(parent[name[-1]])
        path.write_text(json.dumps(data))
        try:
            DeployedPolicy.load(model)
        except (ContractError, PolicyError):
            continue
        accepted.append(name)
    assert accepted == [], "each was changed beside genuine weights"


def test_other_weights_are_refused(model: Path) -> None:
    weights = model / "policy.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    with pytest.raises(PolicyError, match="weights_sha256"):
        DeployedPolicy.load(model)


def test_a_changed_probe_is_refused_unless_the_cell_is_simulated_and_then_loudly(
    model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = model / "probe.json"
    original = json.loads(path.read_text())
    names = [name for name in leaves(original) if name[0] != "weights"]
    names += [name for name in leaves(original) if name[0] == "weights"][::200]
    assert len(names) > 20
    for name in names:
        data = json.loads(json.dumps(original))
        parent = data
        for key in name[:-1]:
            parent = parent[key]
        parent[name[-1]] = changed(parent[name[-1]])
        path.write_text(json.dumps(data))
        with pytest.raises(PolicyError, match=r"probe\.json"):
            DeployedPolicy.load(model)
    with caplog.at_level(logging.WARNING):
        DeployedPolicy.load(model, allow_unsigned=True)
    assert "CHANGED" in caplog.text
    assert "on a real cell it is refused" in caplog.text


def test_the_genuine_probe_of_another_model_is_refused(model: Path, repository_root: Path) -> None:
    task = PolicyContract.load(model / "contract.json").task
    other = next(name for name in TASKS if name != task)
    shutil.copyfile(repository_root / "models" / other / "probe.json", model / "probe.json")
    with pytest.raises(PolicyError, match="is a probe of another model"):
        DeployedPolicy.load(model)


def test_the_card_names_what_it_describes(model: Path) -> None:
    contract = PolicyContract.load(model / "contract.json")
    card = (model / "MODEL_CARD.md").read_text()
    assert contract.sha256 in card
    assert contract.weights_sha256 in card


def test_an_older_export_is_refused_unless_the_cell_is_simulated_and_then_loudly(
    model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = model / "contract.json"
    data = json.loads(path.read_text())
    del data["contract_sha256"]
    path.write_text(json.dumps(data))
    with pytest.raises(ContractError, match=r"contract_sha256.*simulated cell only"):
        DeployedPolicy.load(model)
    with caplog.at_level(logging.WARNING):
        DeployedPolicy.load(model, allow_unsigned=True)
    assert "may have been CHANGED" in caplog.text


def test_a_node_refuses_an_older_export_where_nobody_says_that_the_cell_is_simulated(
    repository_root: Path,
) -> None:
    """The nodes learn it from the cell file; what is not said is taken for a real cell."""
    from equi_core.cell_file import CellFile

    for cell, simulated in (("sim", True), ("lab", False)):
        cells = repository_root / "ros2_ws/src/equi_bringup/launch/cells"
        file = CellFile.load(cells / f"{cell}.yaml")
        for node in ("depth_fusion", "policy"):
            assert file.parameters(node)["simulated"] is simulated


def test_saving_again_gives_the_same_file(model: Path) -> None:
    path = model / "contract.json"
    before = path.read_bytes()
    PolicyContract.load(path).save(path)
    assert path.read_bytes() == before
