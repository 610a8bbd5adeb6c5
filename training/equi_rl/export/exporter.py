# SPDX-License-Identifier: MIT
"""A training checkpoint becomes a model folder that the robot can run.

Writes ``policy.safetensors`` (ordinary filters and matrices: the symmetry is already expanded, so
the robot needs no escnn; tied filters are stored once), ``contract.json`` and ``MODEL_CARD.md``;
from a run folder also the learning curve, and from an evaluation its videos.
"""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import torch
from safetensors.torch import load, save
from torch import Tensor

from equi_core.contract import PolicyContract
from equi_core.files.tied_weights import tie_weights, untie_weights
from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.data.atomic_file import write_atomically
from equi_rl.export.model_card import (
    CARD_FILE,
    copy_evaluation,
    draw_curve,
    images_in,
    model_card,
    remove_evidence,
)
from equi_rl.nets import dense
from equi_rl.nets.checkpoint import JSON_FILE, Checkpoint, load_checkpoint
from equi_rl.nets.config import NetworkConfig
from equi_rl.nets.networks import Actor
from equi_rl.training.evaluation import Evaluation
from equi_rl.training.run_folder import RunFolder

WEIGHTS_FILE = "policy.safetensors"
CONTRACT_FILE = "contract.json"


class ExportError(ValueError):
    """A checkpoint that cannot be deployed, or a folder that cannot be written."""


def export(
    checkpoint: Checkpoint,
    folder: Path,
    evaluation_folder: Path | None = None,
    run_folder: Path | None = None,
) -> PolicyContract:
    """Write a model folder and return its contract, which names the digest of the weights.

    The contract is saved with a digest of itself, so that neither can be changed unnoticed; the
    card names both.

    Nothing is written unless everything fits together. What an older export measured or drew does
    not stay beside the new weights.

    Args:
        checkpoint: what to export.
        folder: model folder; made if need be.
        evaluation_folder: of equi-evaluate on these very weights; its success rates replace those
            of the checkpoint's selection, and its videos go along.
        run_folder: the run whose learning curve is drawn, and whose imitation alone stands on the
            card of a policy that learned from reward.
    """
    evaluation = None
    if evaluation_folder is not None:
        if evaluation_folder.resolve() == folder.resolve():
            raise ExportError(f"{folder} cannot be evaluation and model at once; name two folders")
        evaluation = Evaluation.load(evaluation_folder)
    actor = checkpoint.build_actor()
    config = actor.config
    if (config.observation, config.action_layout, config.memory) != ("depth", "", "lstm"):
        raise ExportError(
            f"network.observation = {config.observation!r}, network.action_layout ="
            f" {config.action_layout!r}, network.memory = {config.memory!r}: the robot runs depth"
            " images, actions (w, x, y, z, r) and an LSTM only"
        )
    if config.initial_state != "zero":
        raise ExportError(
            f"network.initial_state = {config.initial_state!r}: a policy that starts at random"
            " cannot be deployed; train with 'zero'"
        )
    if config.observation_size != checkpoint.contract.image.size_px:
        raise ExportError(
            f"network.observation_size = {config.observation_size} but image.size_px ="
            f" {checkpoint.contract.image.size_px}"
        )
    data = save(exported_tensors(actor))
    digest = hashlib.sha256(data).hexdigest()
    contract = dataclasses.replace(checkpoint.contract, weights_sha256=digest)
    if evaluation is not None:
        contract = _with_evaluation(contract, evaluation)
    folder.mkdir(parents=True, exist_ok=True)
    # The contract names the weights' digest, so it is replaced last: a half-written folder fails.
    write_atomically(folder / WEIGHTS_FILE, data)
    remove_evidence(folder)
    if evaluation_folder is not None:
        copy_evaluation(evaluation_folder, folder)
    progress = [] if run_folder is None else RunFolder(run_folder).read_progress()
    if progress:
        draw_curve(progress, folder)
    card = model_card(contract, actor, evaluation, images_in(folder), progress)
    write_atomically(folder / CARD_FILE, card.encode())
    contract.save(folder / CONTRACT_FILE)
    return contract


def _with_evaluation(contract: PolicyContract, evaluation: Evaluation) -> PolicyContract:
    if (evaluation.weights, evaluation.task) != (contract.weights_sha256, contract.task):
        raise ExportError(
            f"the evaluation is of weights {evaluation.weights[:12]} on {evaluation.task}, not of"
            f" {contract.weights_sha256[:12]} on {contract.task}; run equi-evaluate on this"
            " checkpoint"
        )
    measured = evaluation.overall
    provenance = dataclasses.replace(
        contract.provenance,
        evaluation_successes=measured.successes,
        evaluation_episodes=measured.episodes,
    )
    return dataclasses.replace(contract, provenance=provenance)


def exported_tensors(actor: Actor) -> dict[str, Tensor]:
    """Weights by name, as the robot's runner expects them: matrices, and each tied filter once."""
    with torch.no_grad():
        named = dict(dense.named_tensors(actor.dense()))
    arrays = {}
    for name, tensor in named.items():
        is_matrix = tensor.dim() == 4 and not name.startswith("history.encoder.")
        matrix = tensor.flatten(1) if is_matrix else tensor
        arrays[name] = matrix.contiguous().detach().cpu().numpy()
    tied = tie_weights(arrays, actor.config.to_mapping())
    return {name: torch.from_numpy(array.copy()) for name, array in tied.items()}


def load_policy(folder: Path) -> tuple[PolicyContract, str, ActingPolicy]:
    """Contract, digest of the weights and policy of a training checkpoint or a model folder."""
    if not (folder / CONTRACT_FILE).is_file():
        if not (folder / JSON_FILE).is_file():
            raise ExportError(
                f"{folder} holds neither a model ({CONTRACT_FILE}) nor a checkpoint ({JSON_FILE});"
                " give a folder such as models/block_picking or runs/first/checkpoints/best"
            )
        checkpoint = load_checkpoint(folder)
        # Acts with the weights that an export would hold, to the bit: they are what is measured.
        data = save(exported_tensors(checkpoint.build_actor()))
        policy = _policy_of(data, checkpoint.actor)
        return checkpoint.contract, hashlib.sha256(data).hexdigest(), policy
    contract = PolicyContract.load(folder / CONTRACT_FILE, allow_unsigned=True)
    try:
        data = (folder / WEIGHTS_FILE).read_bytes()
    except OSError as error:
        raise ExportError(f"{folder / WEIGHTS_FILE} cannot be read: {error.strerror}") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != contract.weights_sha256:
        raise ExportError(
            f"{folder / WEIGHTS_FILE} is not the file that {CONTRACT_FILE} describes"
            f" (sha256 {digest[:12]}, expected {contract.weights_sha256[:12]}); export it again"
        )
    policy = _policy_of(data, NetworkConfig.from_mapping(contract.network))
    return contract, digest, policy


def _policy_of(data: bytes, config: NetworkConfig) -> ActingPolicy:
    """The policy of a weights file."""
    with torch.no_grad():
        empty = Actor(config).dense()
    arrays = {name: tensor.numpy() for name, tensor in load(data).items()}
    written_out = untie_weights(arrays, config.group)
    stored = iter(torch.from_numpy(written_out[name]) for name, _ in dense.named_tensors(empty))
    # Both walk the weights in the same order; matrices get their 1x1 filters back.
    weights = dense.map_tensors(empty, lambda tensor: next(stored).reshape(tensor.shape))
    return ActingPolicy(config, weights)
