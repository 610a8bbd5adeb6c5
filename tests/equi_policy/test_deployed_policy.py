# SPDX-License-Identifier: MIT
"""The robot's policy runner: start-up refusals, explicit state, and no foreign code."""

from __future__ import annotations

import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save

from equi_core.contract import ContractError, PolicyContract
from equi_policy.bench_policy_step import run, write_random_policy
from equi_policy.deployed_policy import CONTRACT_FILE, WEIGHTS_FILE, DeployedPolicy
from equi_policy.errors import LayoutError, ObservationError, PolicyError, WeightsError


@pytest.fixture
def folder(tmp_path):
    return write_random_policy(tmp_path)


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    return DeployedPolicy.load(write_random_policy(tmp_path_factory.mktemp("model")))


def image(seed=0, holding=0.0):
    values = np.random.default_rng(seed).uniform(0.0, 0.3, (2, 84, 84)).astype(np.float32)
    values[1] = holding
    return values


def change_contract(folder, change):
    """Change the contract and sign it anew, so that only the change itself can be refused."""
    contract = json.loads((folder / CONTRACT_FILE).read_text())
    contract.pop("contract_sha256")
    change(contract)
    canonical = json.dumps(contract, sort_keys=True, separators=(",", ":"))
    contract["contract_sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    (folder / CONTRACT_FILE).write_text(json.dumps(contract))


def replace_weights(folder, data):
    """Put in other bytes and make the contract vouch for them."""
    (folder / WEIGHTS_FILE).write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    change_contract(folder, lambda contract: contract.update(weights_sha256=digest))


def test_a_folder_may_be_named_as_text(repository_root):
    folder = repository_root / "models" / "block_picking"
    assert DeployedPolicy.load(str(folder)).contract == DeployedPolicy.load(folder).contract


def test_an_action_lies_in_the_box_and_the_state_moves_on(policy):
    state = policy.initial_state()
    action, following = policy.act(image(), state)
    assert action.shape == (5,)
    assert action.dtype == np.float32
    assert (np.abs(action) <= 1.0).all()
    assert (state.step, following.step) == (0, 1)
    assert not torch.equal(following.hidden, state.hidden)


def test_the_same_inputs_give_the_same_action_whatever_happened_between(policy):
    state = policy.initial_state()
    first, _ = policy.act(image(0), state)
    for seed in range(3):
        policy.act(image(seed), state)
    again, _ = policy.act(image(0), state)
    np.testing.assert_array_equal(first, again)


def test_acting_never_changes_the_state_it_was_given(policy):
    _, state = policy.act(image(0), policy.initial_state())
    kept = state.hidden.clone(), state.cell.clone(), state.previous_action.clone()
    policy.act(image(1), state)
    for before, after in zip(kept, (state.hidden, state.cell, state.previous_action), strict=True):
        assert torch.equal(before, after)


def test_the_executed_action_replaces_the_commanded_one_in_the_state(policy):
    action, state = policy.act(image(0), policy.initial_state())
    np.testing.assert_array_equal(state.previous_action.numpy(), action)
    clipped = state.with_executed(action * 0.5)
    one, _ = policy.act(image(1), state)
    two, _ = policy.act(image(1), clipped)
    assert np.abs(one - two).max() > 1e-6


def test_the_holding_flag_is_seen(policy):
    state = policy.initial_state()
    one, _ = policy.act(image(0, 0.0), state)
    two, _ = policy.act(image(0, 1.0), state)
    assert np.abs(one - two).max() > 1e-6


def test_a_step_reports_its_spread_and_the_size_of_its_state(policy):
    step = policy.step(image(), policy.initial_state())
    assert step.std.shape == (5,)
    assert (step.std > 0.0).all()
    assert step.state_norm == pytest.approx(float(step.state.hidden.norm()))


@pytest.mark.parametrize(
    ("observation", "named"),
    [
        (np.zeros((2, 80, 80), np.float32), "shape"),
        (np.full((2, 84, 84), np.nan, np.float32), "finite"),
        (np.stack([image()[0], np.arange(84 * 84).reshape(84, 84)]), "holding flag"),
    ],
)
def test_a_bad_observation_is_refused_and_the_policy_stays_usable(policy, observation, named):
    state = policy.initial_state()
    with pytest.raises(ObservationError, match=named):
        policy.act(observation, state)
    policy.act(image(), state)


def test_a_state_of_another_policy_is_refused(policy):
    state = policy.initial_state()
    foreign = type(state)(torch.zeros(7), torch.zeros(7), torch.zeros(5))
    with pytest.raises(ObservationError, match=r"state\.hidden.*initial_state"):
        policy.act(image(), foreign)


@pytest.mark.parametrize("action", [np.zeros(4), [np.nan] * 5, [np.inf, 0, 0, 0, 0]])
def test_an_impossible_executed_action_is_refused(policy, action):
    with pytest.raises(ObservationError, match="executed action"):
        policy.initial_state().with_executed(action)


def test_truncated_and_tampered_weights_are_refused_by_digest(folder):
    data = (folder / WEIGHTS_FILE).read_bytes()
    for damaged in (data[: len(data) // 2], data[:-1] + bytes([data[-1] ^ 1]), b""):
        (folder / WEIGHTS_FILE).write_bytes(damaged)
        with pytest.raises(WeightsError, match="weights_sha256"):
            DeployedPolicy.load(folder)


def test_a_truncated_file_with_a_forged_digest_is_still_refused(folder):
    replace_weights(folder, (folder / WEIGHTS_FILE).read_bytes()[:-400])
    with pytest.raises(WeightsError, match="not a whole safetensors file"):
        DeployedPolicy.load(folder)


def test_a_pickle_with_a_forged_digest_is_refused_and_never_run(folder, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    replace_weights(folder, pickle.dumps(Bomb()))
    with pytest.raises(WeightsError, match="safetensors"):
        DeployedPolicy.load(folder)
    assert not (tmp_path / "ran").exists()


def test_weights_of_another_export_are_refused(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    write_random_policy(other, seed=1)
    (folder / WEIGHTS_FILE).write_bytes((other / WEIGHTS_FILE).read_bytes())
    with pytest.raises(WeightsError, match=r"another export"):
        DeployedPolicy.load(folder)


def changed_tensors(folder, change):
    tensors = load_file(folder / WEIGHTS_FILE)
    change(tensors)
    replace_weights(folder, save(tensors))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda t: t.pop("mean.bias"), r"'mean.bias'.*missing"),
        (lambda t: t.update(extra=torch.zeros(2)), r"'extra'.*another architecture"),
        (lambda t: t.update({"mean.bias": torch.zeros(6)}), r"'mean.bias'.*\(6,\)"),
        (lambda t: t.update({"mean.bias": torch.zeros(5).double()}), r"'mean.bias'.*float64"),
        (lambda t: t.update({"mean.bias": torch.full((5,), torch.nan)}), r"'mean.bias'.*finite"),
    ],
)
def test_tensors_that_do_not_fit_the_contract_are_refused_by_name(folder, change, named):
    changed_tensors(folder, change)
    with pytest.raises(WeightsError, match=named):
        DeployedPolicy.load(folder)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("format", 2),
        ("observation", "grid"),
        ("actions", "discrete"),
        ("initial_state", "random"),
        ("squash", "none"),
        ("encoder_channels", [32, 64]),
        ("encoder_kernels", [8, 4, 3, 3, 3, 99]),
        ("encoder_strides", [4, 2, 1, 1, 1, "one"]),
        ("recurrent_channels", -1),
        ("recurrent_channels", 10**9),
        ("head_channels", []),
        ("skip_connection", "yes"),
        ("log_std_range", [2.0, -20.0]),
        ("depth_offset_m", "deep"),
    ],
)
def test_a_layout_the_robot_cannot_run_is_refused_by_field(folder, entry, value):
    change_contract(folder, lambda contract: contract["network"].update({entry: value}))
    with pytest.raises(LayoutError) as caught:
        DeployedPolicy.load(folder)
    assert caught.value.field_name == f"network.{entry}"


def test_a_missing_layout_entry_and_a_missing_file_are_refused(folder):
    (folder / WEIGHTS_FILE).rename(folder / "elsewhere")
    with pytest.raises(WeightsError, match="cannot be read"):
        DeployedPolicy.load(folder)
    (folder / "elsewhere").rename(folder / WEIGHTS_FILE)
    change_contract(folder, lambda contract: contract["network"].pop("squash"))
    with pytest.raises(LayoutError, match=r"network\.squash"):
        DeployedPolicy.load(folder)
    (folder / CONTRACT_FILE).unlink()
    with pytest.raises(ContractError, match="does not exist"):
        DeployedPolicy.load(folder)


def test_an_unexported_contract_is_refused(folder):
    change_contract(folder, lambda contract: contract.update(weights_sha256=""))
    with pytest.raises(WeightsError, match=r"weights_sha256.*equi-export"):
        DeployedPolicy.load(folder)


def test_the_image_size_of_contract_and_network_must_agree(folder):
    contract = PolicyContract.load(folder / CONTRACT_FILE)
    change_contract(folder, lambda data: data["image"].update(size_px=contract.image.size_px + 4))
    with pytest.raises(LayoutError, match="observation_size"):
        DeployedPolicy.load(folder)


def test_every_refusal_is_one_family():
    for kind in (LayoutError, WeightsError, ObservationError):
        assert issubclass(kind, PolicyError)


def test_loading_and_acting_needs_no_training_package(folder):
    code = (
        "import sys, numpy as np; from pathlib import Path;"
        "[sys.modules.__setitem__(name, None) for name in ('escnn', 'equi_rl', 'pybullet')];"
        "from equi_policy.deployed_policy import DeployedPolicy;"
        f"policy = DeployedPolicy.load(Path({str(folder)!r}));"
        "policy.act(np.zeros((2, 84, 84), np.float32), policy.initial_state())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_benchmark_reports_its_metrics(folder, capsys):
    metrics = run(["--model", str(folder), "--steps", "100"])
    assert metrics["steps"] == 100
    p50_ms, p99_ms = metrics["p50_ms"], metrics["p99_ms"]
    assert isinstance(p50_ms, float)
    assert isinstance(p99_ms, float)
    assert 0.0 < p50_ms <= p99_ms
    assert metrics["training_packages_imported"] == []
