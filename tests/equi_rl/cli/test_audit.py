# SPDX-License-Identifier: MIT
"""`equi-audit` as a user types it."""

from __future__ import annotations

import re

import pytest
import torch
from small_networks import tiny_config

from equi_core.contract import ImageSpec, PolicyContract
from equi_rl.audit.networks import training_table
from equi_rl.carflag.policy import GridPolicy
from equi_rl.carflag.worlds import CarFlag2D
from equi_rl.cli.audit import main
from equi_rl.nets.checkpoint import save_checkpoint
from equi_rl.nets.networks import Actor, Critic


def test_a_checkpoint_is_audited_per_element_and_step(tmp_path, capsys):
    torch.manual_seed(0)
    config = tiny_config("D4")
    contract = PolicyContract(
        task="block_picking",
        group="D4",
        image=ImageSpec(size_px=16),
        network=config.to_mapping(),
    )
    save_checkpoint(tmp_path, contract, Actor(config), Critic(config))
    assert main(["network", "--checkpoint", str(tmp_path), "--steps", "10"]) == 0
    text = capsys.readouterr().out
    for element in ("r3", "m0", "m3"):
        assert text.count(element) == 3  # mean, log-std, value
    assert "value" in text


def test_no_error_loses_its_exponent_in_a_narrow_terminal(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["network", "--steps", "50", "--episodes", "1"]) == 0
    numbers = re.findall(r"\d\.\d\S*", capsys.readouterr().out.partition("element")[2])
    assert len(numbers) > 40
    assert [text for text in numbers if not re.fullmatch(r"\d\.\d+(e[-+]\d\d\)?|\)?)?", text)] == []


def test_an_environment_is_audited(capsys):
    command = ["environment", "equi/CarFlag2D-v0", "--episodes", "2", "--starts", "30"]
    assert main([*command, "--option", "offset=1"]) == 0
    text = capsys.readouterr().out
    for condition in ("transition", "reward", "observation", "initial belief"):
        assert condition in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["environment", "equi/Nowhere-v0"],
        ["environment", "equi/CarFlag2D-v0", "--option", "offset"],
        ["network", "--checkpoint", "no/such/folder"],
    ],
)
def test_bad_requests_end_with_a_message_and_exit_code_2(arguments, capsys):
    assert main(arguments) == 2
    assert "equi-audit:" in capsys.readouterr().err


def test_the_table_of_parameters_lists_the_networks_that_carflag_trains(capsys):
    assert main(["params"]) == 0
    lines = capsys.readouterr().out.splitlines()
    trained = GridPolicy(CarFlag2D(), equivariant=True).num_parameters
    row = next(line for line in lines if line.startswith("| CarFlag 9 x 9 grid (C4), equivariant"))
    assert f"| {trained:,} | shared |" in row


def test_training_moves_the_weights_and_keeps_an_equivariant_network_exact():
    rows = {row.output: row for row in training_table(tiny_config(), updates=3)}
    assert set(rows) == {"mean", "log-std", "value"}
    assert all(row.exact_after < 1e-5 for row in rows.values())
    plain = {row.output: row for row in training_table(tiny_config(), 3, "plain")}
    assert plain["value"].exact_after > 1e-4
