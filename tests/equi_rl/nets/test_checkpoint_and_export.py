# SPDX-License-Identifier: MIT
"""Checkpoints and exports: round trips, and refusals of damaged or foreign files."""

from __future__ import annotations

import hashlib
import json
import pickle

import pytest
import torch
from safetensors.torch import load_file, save
from small_networks import tiny_config

from equi_core.contract import ImageSpec, PolicyContract, Provenance
from equi_rl.cli.export import main
from equi_rl.export.exporter import ExportError, export, exported_tensors, load_policy
from equi_rl.nets.checkpoint import (
    JSON_FILE,
    TENSORS_FILE,
    CheckpointError,
    load_checkpoint,
    save_checkpoint,
)
from equi_rl.nets.networks import Actor, Critic
from equi_rl.training.evaluation import Evaluation
from equi_rl.training.rollout import EpisodeOutcome


def contract_for(config, **changes):
    return PolicyContract(
        task="block_picking",
        group=config.group,
        image=ImageSpec(size_px=config.observation_size),
        network=config.to_mapping(),
        **changes,
    )


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    actor, critic = Actor(tiny_config()), Critic(tiny_config())
    save_checkpoint(
        tmp_path / "checkpoint",
        contract_for(actor.config),
        actor,
        critic,
        tensors={"trainer.log_temperature": torch.tensor(-2.3)},
        extra={"environment_steps": 7},
    )
    return tmp_path / "checkpoint"


def rewrite(folder, change):
    """Change the description and keep it consistent otherwise."""
    description = json.loads((folder / JSON_FILE).read_text())
    change(description)
    (folder / JSON_FILE).write_text(json.dumps(description))


def test_a_checkpoint_gives_back_what_was_stored(folder):
    checkpoint = load_checkpoint(folder)
    torch.manual_seed(0)
    actor, critic = Actor(tiny_config()), Critic(tiny_config())
    for one, two in ((checkpoint.build_actor(), actor), (checkpoint.build_critic(), critic)):
        for (name, found), (_, wanted) in zip(
            one.named_parameters(), two.named_parameters(), strict=True
        ):
            assert torch.equal(found, wanted), name
    assert checkpoint.tensors["trainer.log_temperature"] == torch.tensor(-2.3)
    assert checkpoint.extra == {"environment_steps": 7}


def test_a_truncated_or_changed_tensor_file_is_refused(folder):
    data = (folder / TENSORS_FILE).read_bytes()
    for damaged in (data[:-100], data[:-1] + bytes([data[-1] ^ 1]), b""):
        (folder / TENSORS_FILE).write_bytes(damaged)
        with pytest.raises(CheckpointError, match="tensors_sha256"):
            load_checkpoint(folder)


def test_a_pickle_in_place_of_the_tensors_is_refused_and_never_run(folder, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    data = pickle.dumps(Bomb())
    (folder / TENSORS_FILE).write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    rewrite(folder, lambda description: description.update(tensors_sha256=digest))
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        load_checkpoint(folder)
    assert not (tmp_path / "ran").exists()


def test_parameters_of_another_architecture_are_refused_by_name(folder):
    def widen(description):
        description["contract"]["network"]["recurrent_channels"] = 64

    rewrite(folder, widen)
    with pytest.raises(CheckpointError, match=r"actor\.history\.lstm.*shape"):
        load_checkpoint(folder).build_actor()


def test_a_group_that_differs_from_the_network_is_refused(folder):
    rewrite(folder, lambda description: description["contract"].update(group="D4"))
    with pytest.raises(CheckpointError, match=r"contract.group = D4, network.group = C4"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda d: d.update(format=9), "format = 9"),
        (lambda d: d["contract"].pop("task"), "task"),
        (lambda d: d["contract"]["network"].update(group="C5"), "network.group"),
        (lambda d: d["contract"]["network"].update(head_channels=[30]), "head_channels"),
    ],
)
def test_a_malformed_description_is_refused_by_field(folder, change, named):
    rewrite(folder, change)
    with pytest.raises(CheckpointError, match=named):
        load_checkpoint(folder)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_checkpoint(tmp_path / "nothing")


def test_saving_an_actor_under_a_foreign_contract_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"contract.network"):
        save_checkpoint(tmp_path, contract_for(tiny_config("D4")), Actor(tiny_config()))


def test_an_export_holds_each_tied_filter_once_a_matching_digest_and_a_card(folder, tmp_path):
    origin = Provenance(agent="sac", seed=3, evaluation_successes=9, evaluation_episodes=10)
    checkpoint = load_checkpoint(folder)
    checkpoint = type(checkpoint)(
        contract_for(tiny_config(), provenance=origin), checkpoint.critic, checkpoint.tensors
    )
    contract = export(checkpoint, tmp_path / "model")
    data = (tmp_path / "model" / "policy.safetensors").read_bytes()
    assert contract.weights_sha256 == hashlib.sha256(data).hexdigest()
    assert PolicyContract.load(tmp_path / "model" / "contract.json") == contract
    tensors = load_file(tmp_path / "model" / "policy.safetensors")
    wanted = exported_tensors(checkpoint.build_actor())
    assert tensors.keys() == wanted.keys()
    # 32 output channels are 8 fields of C4, each with one filter over 64 input channels.
    assert tensors["head.0.tied_weight"].shape == (8, 1, 64, 1, 1)
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text()
    assert "0.900 (9/10" in card
    assert contract.weights_sha256 in card


def test_the_card_admits_that_nothing_was_measured(folder, tmp_path):
    export(load_checkpoint(folder), tmp_path / "model")
    assert "not measured" in (tmp_path / "model" / "MODEL_CARD.md").read_text()


def test_a_policy_with_a_random_start_is_not_exported(tmp_path):
    config = tiny_config(initial_state="random")
    save_checkpoint(tmp_path / "checkpoint", contract_for(config), Actor(config))
    with pytest.raises(ExportError, match=r"network.initial_state"):
        export(load_checkpoint(tmp_path / "checkpoint"), tmp_path / "model")


def test_the_command_exports_and_reports_failures(folder, tmp_path, capsys):
    assert main([str(folder), str(tmp_path / "model")]) == 0
    assert (tmp_path / "model" / "contract.json").is_file()
    assert main([str(tmp_path / "nothing"), str(tmp_path / "other")]) == 2
    assert "cannot be read" in capsys.readouterr().err.replace("\n", " ")


def an_evaluation(folder, weights):
    """An evaluation of two episodes, with a video of the one that succeeded."""
    outcomes = (EpisodeOutcome(7, 5, True, "", True), EpisodeOutcome(8, 50, False, "late", None))
    Evaluation("block_picking", weights, 7, False, outcomes).save(folder)
    (folder / "success_0.gif").write_bytes(b"a video")
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_an_evaluation_goes_onto_the_card_and_its_video_beside_it(folder, tmp_path):
    evaluation = an_evaluation(tmp_path / "evaluation", load_policy(folder)[1])
    model = tmp_path / "model"
    assert main([str(folder), str(model), "--evaluation", str(evaluation)]) == 0
    assert PolicyContract.load(model / "contract.json").provenance.evaluation_successes == 1
    assert (model / "success.gif").read_bytes() == b"a video"
    card = (model / "MODEL_CARD.md").read_text()
    assert "0.500 (1/2)" in card
    assert "success.gif" in card


def test_what_was_measured_of_other_weights_does_not_stay_beside_new_ones(folder, tmp_path):
    evaluation = an_evaluation(tmp_path / "evaluation", load_policy(folder)[1])
    model = tmp_path / "model"
    main([str(folder), str(model), "--evaluation", str(evaluation)])
    (model / "curve.png").write_bytes(b"of another run")
    assert main([str(folder), str(model), "--overwrite"]) == 0
    # The layouts of the task's test scenes were not measured: they stay.
    kept = {"policy.safetensors", "contract.json", "MODEL_CARD.md", "scenes.json"}
    assert set(contents(model)) == kept
    assert "success.gif" not in (model / "MODEL_CARD.md").read_text()


@pytest.mark.parametrize("fault", ["other weights", "no evaluation", "random start", "same folder"])
def test_an_export_that_is_refused_leaves_the_model_as_it_was(fault, folder, tmp_path, capsys):
    # Given a model with its evaluation
    digest = load_policy(folder)[1]
    model = tmp_path / "model"
    evaluation = an_evaluation(tmp_path / "evaluation", digest)
    main([str(folder), str(model), "--evaluation", str(evaluation)])
    before = contents(model)
    # when an export fails
    if fault == "other weights":
        an_evaluation(evaluation, "digest of other weights")
    elif fault == "no evaluation":
        (evaluation / "evaluation.json").unlink()
    elif fault == "random start":
        config = tiny_config(initial_state="random")
        save_checkpoint(folder, contract_for(config), Actor(config))
    else:
        evaluation = model
    again = [str(folder), str(model), "--evaluation", str(evaluation), "--overwrite"]
    assert main(again) == 2
    # then nothing has changed.
    assert contents(model) == before


def test_a_model_is_replaced_only_on_request(folder, tmp_path, capsys):
    model = tmp_path / "model"
    assert main([str(folder), str(model)]) == 0
    before = contents(model)
    assert main([str(folder), str(model)]) == 2
    assert "already holds a model; give --overwrite" in capsys.readouterr().err
    assert contents(model) == before
    assert main([str(folder), str(model), "--overwrite"]) == 0


def test_a_refused_export_makes_no_folder(folder, tmp_path):
    missing = tmp_path / "no evaluation"
    assert main([str(folder), str(tmp_path / "model"), "--evaluation", str(missing)]) == 2
    assert not (tmp_path / "model").exists()


def test_the_card_of_a_shipped_policy_tells_all_that_varied_in_training(folder, tmp_path):
    rewrite(folder, lambda d: d["contract"]["provenance"].update(preset="ship"))
    export(load_checkpoint(folder), tmp_path / "model")
    card = (tmp_path / "model" / "MODEL_CARD.md").read_text()
    assert "size, mass, friction, calibration error, latency and depth noise" in card


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (
            "rounds,updates,environment_steps,seconds,successes,episodes\n"
            "0,2000,3379,276.2,75,100\n12,4000,20000,900.0,90,100\n25,6000,41047,1700.0,97,100\n",
            "on the 100 selection scenes | 0.750 (75/100, 95 % 0.657 to 0.825);"
            " this policy on them 0.970 (97/100, 95 % 0.915 to 0.990) |",
        ),
        (None, "not known: exported without its run folder"),
    ],
)
def test_the_card_of_a_policy_that_learned_from_reward_shows_imitation_alone(
    progress, expected, folder, tmp_path
):
    def learn_from_reward(description):
        provenance = description["contract"]["provenance"]
        provenance |= {"preset": "deploy", "environment_steps": 41047}

    rewrite(folder, learn_from_reward)
    if progress is not None:
        (tmp_path / "progress.csv").write_text(progress)
    run_folder = None if progress is None else tmp_path
    export(load_checkpoint(folder), tmp_path / "model", run_folder=run_folder)
    assert expected in (tmp_path / "model" / "MODEL_CARD.md").read_text()


def test_an_interrupted_write_is_recognised(folder):
    # The tensors of the next checkpoint arrived, its description did not.
    (folder / TENSORS_FILE).write_bytes(save({"actor.x": torch.zeros(1)}))
    with pytest.raises(CheckpointError, match="interrupted"):
        load_checkpoint(folder)
