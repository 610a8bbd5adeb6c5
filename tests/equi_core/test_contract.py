# SPDX-License-Identifier: MIT
"""Specification of the policy contract: strict JSON, typed errors that name the field."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import pytest

from equi_core.contract import (
    ContractError,
    PolicyContract,
    Provenance,
)


def a_contract(**changes) -> PolicyContract:
    values = {
        "task": "block_picking",
        "network": {"encoder": {"widths": [8, 16]}, "kind": "equivariant"},
        "weights_sha256": "0" * 64,
        "provenance": Provenance(seed=3, evaluation_successes=9, evaluation_episodes=10),
    }
    return PolicyContract(**{**values, **changes})


def test_a_contract_survives_json_and_a_file(tmp_path):
    contract = a_contract()
    contract.save(tmp_path / "contract.json")
    assert PolicyContract.load(tmp_path / "contract.json") == contract
    assert PolicyContract.from_json(contract.to_json()) == contract
    assert list(tmp_path.iterdir()) == [tmp_path / "contract.json"]


def test_a_contract_can_be_sent_to_another_process_and_copied():
    contract = a_contract()
    assert pickle.loads(pickle.dumps(contract)) == contract
    assert copy.deepcopy(contract) == contract


def test_the_defaults_are_the_papers():
    contract = a_contract()
    assert (contract.image.size_px, contract.image.view_m) == (84, 0.40)
    assert contract.action.max_step_m == 0.05
    assert contract.action.max_yaw_step_rad == pytest.approx(3.14159265 / 8)
    assert contract.workspace.lower_m == (0.3, -0.2, 0.01)
    assert contract.workspace.upper_m == (0.7, 0.2, 0.25)
    assert contract.max_steps == 50


def test_a_contract_cannot_be_changed_from_outside():
    layout = {"widths": [1, 2]}
    contract = a_contract(network=layout)
    layout["widths"].append(3)
    assert contract.network["widths"] == [1, 2]
    with pytest.raises(TypeError):
        contract.network["widths"] = []
    with pytest.raises(dataclasses.FrozenInstanceError):
        contract.task = "other"  # type: ignore[misc]


def edited(change) -> str:
    data = json.loads(a_contract().to_json())
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("change", "field_name"),
    [
        (lambda d: d.update(surprise=1), "surprise"),
        (lambda d: d["image"].update(colour="red"), "image.colour"),
        (lambda d: d["image"].pop("view_m"), "image.view_m"),
        (lambda d: d.pop("task"), "task"),
        (lambda d: d.update(version=99, new_field=1), "version"),
        (lambda d: d["image"].update(size_px="84"), "image.size_px"),
        (lambda d: d["image"].update(size_px=True), "image.size_px"),
        (lambda d: d["image"].update(view_m=-0.4), "image.view_m"),
        (lambda d: d["action"].update(max_step_m=float("inf")), "action.max_step_m"),
        (lambda d: d["workspace"].update(x_min_m=0.9), "workspace.x_min_m"),
        (lambda d: d.update(group="SO2"), "group"),
        (lambda d: d.update(task="Block Picking"), "task"),
        (lambda d: d.update(weights_sha256="abc"), "weights_sha256"),
        (lambda d: d.update(network=[1]), "network"),
        (lambda d: d.update(image=3), "image"),
        (lambda d: d["provenance"].update(evaluation_successes=11), "evaluation_successes"),
    ],
)
def test_a_malformed_field_is_refused_by_name(change, field_name):
    with pytest.raises(ContractError, match=field_name) as caught:
        PolicyContract.from_json(edited(change))
    assert field_name in caught.value.field_name


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_text_that_is_no_contract_is_refused(text):
    with pytest.raises(ContractError):
        PolicyContract.from_json(text)


def test_a_missing_file_says_what_was_expected(tmp_path):
    with pytest.raises(ContractError, match=r"contract\.json"):
        PolicyContract.load(tmp_path / "contract.json")


def test_a_network_layout_must_be_plain_data():
    with pytest.raises(ContractError, match="network"):
        a_contract(network={"weights": object()})
    with pytest.raises(ContractError, match="network"):
        a_contract(network={"scale": float("nan")})
