# SPDX-License-Identifier: MIT
"""Specification of evaluation: counts, splits and intervals, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from equi_core.contract import PolicyContract
from equi_core.scene_seeds import SELECTION_SEED
from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.cli.evaluate import main
from equi_rl.export.exporter import ExportError, export, load_policy
from equi_rl.nets.checkpoint import load_checkpoint, save_checkpoint
from equi_rl.nets.config import reference_config
from equi_rl.nets.networks import Actor
from equi_rl.training.evaluation import Evaluation, EvaluationError
from equi_rl.training.rollout import EpisodeOutcome


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A policy that has learnt nothing."""
    folder = tmp_path_factory.mktemp("run") / "checkpoint"
    torch.manual_seed(0)
    actor = Actor(reference_config("C4"))
    contract = PolicyContract(task="block_picking", network=actor.config.to_mapping())
    save_checkpoint(folder, contract, actor)
    return folder


def outcome(seed, steps, success, movable_first, failure=""):
    return EpisodeOutcome(seed, steps, success, failure, movable_first)


RESULT = Evaluation(
    "block_picking",
    "digest",
    7,
    False,
    (
        outcome(7, 6, True, True),
        outcome(8, 10, True, True),
        outcome(9, 24, True, False),
        outcome(10, 50, False, False, "time ran out"),
        outcome(11, 50, False, None, "time ran out"),
    ),
)


def test_success_is_split_by_which_object_was_tried_first():
    rows = {name: (rate.successes, rate.episodes, length) for name, rate, length in RESULT.rows()}
    assert rows["all"] == (3, 5, pytest.approx(40 / 3))
    assert rows["movable first"] == (2, 2, 8.0)
    assert rows["immovable first"] == (1, 2, 24.0)
    assert rows["none tried"][:2] == (0, 1)
    assert RESULT.failures == {"time ran out": 2}


def test_a_saved_result_is_read_back_whole(tmp_path):
    RESULT.save(tmp_path)
    assert Evaluation.load(tmp_path) == RESULT
    stored = json.loads((tmp_path / "evaluation.json").read_text())
    assert stored["success"]["interval_95"] == [0.2307, 0.8824]  # Wilson, 3 of 5


def test_a_file_that_is_no_result_is_refused_by_name(tmp_path):
    (tmp_path / "evaluation.json").write_text("{}")
    with pytest.raises(EvaluationError, match=r"evaluation.json.*equi-evaluate again"):
        Evaluation.load(tmp_path)


def test_an_exported_policy_acts_like_the_checkpoint_it_came_from(checkpoint, tmp_path):
    export(load_checkpoint(checkpoint), tmp_path / "model")
    policies: list[ActingPolicy] = []
    digests = []
    for folder in (checkpoint, tmp_path / "model"):
        _, digest, policy = load_policy(folder)
        policies.append(policy)
        digests.append(digest)
    assert digests[0] == digests[1]
    rng = np.random.default_rng(0)
    states = [policy.start(seed=0) for policy in policies]
    for _ in range(3):
        image = rng.uniform(0, 0.3, (2, 84, 84)).astype(np.float32)
        action = rng.uniform(-1, 1, 5).astype(np.float32)
        answers = []
        for index, policy in enumerate(policies):
            answer, states[index] = policy.act(image, action, states[index])
            answers.append(answer)
        first, second = answers
        np.testing.assert_array_equal(first, second)


def test_weights_that_the_contract_does_not_describe_are_refused(checkpoint, tmp_path):
    export(load_checkpoint(checkpoint), tmp_path)
    weights = tmp_path / "policy.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(ExportError, match=r"not the file that contract.json describes"):
        load_policy(tmp_path)


def test_the_command_plays_writes_the_result_and_a_video_of_a_failure(checkpoint, tmp_path, capsys):
    arguments = [str(checkpoint), "--episodes", "2", "--videos", "1", "--out", str(tmp_path)]
    assert main(arguments) == 0
    assert "time ran out" in capsys.readouterr().out
    result = Evaluation.load(tmp_path)
    assert [episode.seed for episode in result.outcomes] == [900_000_000, 900_000_001]
    assert result.overall.successes == 0
    assert (tmp_path / "failure_0.gif").stat().st_size > 10_000
    assert not list(tmp_path.glob("success*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--episodes", "0"], "--episodes 0"),
        (["--seed", str(SELECTION_SEED + 50)], "success rate would be too high"),
        (["--seed", "0"], "must be at least 900000000"),
        (["--seed", "-1"], "--seed -1"),
    ],
)
def test_a_senseless_evaluation_is_refused(checkpoint, capsys, arguments, words):
    assert main([str(checkpoint), *arguments]) == 2
    assert words in capsys.readouterr().err.replace("\n", " ")


def test_a_folder_without_a_policy_is_refused_by_name(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "holds neither a model (contract.json) nor a checkpoint (checkpoint.json)" in error
