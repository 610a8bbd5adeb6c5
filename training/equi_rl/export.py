"""`equi-export`: a training checkpoint becomes a model folder that the robot can run.

Writes ``policy.safetensors`` (ordinary filters and matrices: the symmetry is already expanded, so
the robot needs no escnn), ``contract.json`` and ``MODEL_CARD.md``. The card states what was
measured, and the equivariance error of the exported weights themselves.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import sys
from pathlib import Path

import torch
from rich.console import Console
from safetensors.torch import load, save
from torch import Tensor

from equi_core.contract import PolicyContract
from equi_core.statistics import SuccessRate
from equi_rl.acting import ActingPolicy
from equi_rl.nets import dense
from equi_rl.nets.checkpoint import Checkpoint, CheckpointError, load_checkpoint
from equi_rl.nets.config import NetworkConfig
from equi_rl.nets.equivariance import ElementError, actor_errors
from equi_rl.nets.layers import count_parameters
from equi_rl.nets.networks import Actor

WEIGHTS_FILE = "policy.safetensors"
CONTRACT_FILE = "contract.json"
CARD_FILE = "MODEL_CARD.md"


class ExportError(ValueError):
    """A checkpoint that cannot be deployed, or a folder that cannot be written."""


def export(checkpoint: Checkpoint, folder: Path) -> PolicyContract:
    """Write a model folder and return its contract, which names the digest of the weights."""
    actor = checkpoint.build_actor()
    config = actor.config
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
    contract = dataclasses.replace(
        checkpoint.contract, weights_sha256=hashlib.sha256(data).hexdigest()
    )
    folder.mkdir(parents=True, exist_ok=True)
    # The contract names the weights' digest, so it is replaced last: a half-written folder fails.
    _write(folder / WEIGHTS_FILE, data)
    _write(folder / CARD_FILE, model_card(contract, actor).encode())
    contract.save(folder / CONTRACT_FILE)
    return contract


def exported_tensors(actor: Actor) -> dict[str, Tensor]:
    """Dense weights by name, as the robot's runner expects them; 1x1 filters as matrices."""
    with torch.no_grad():
        named = dict(dense.named_tensors(actor.dense()))
    tensors = {}
    for name, tensor in named.items():
        is_matrix = tensor.dim() == 4 and not name.startswith("history.encoder.")
        tensors[name] = (tensor.flatten(1) if is_matrix else tensor).contiguous().clone()
    return tensors


def load_policy(folder: Path) -> tuple[PolicyContract, str, ActingPolicy]:
    """Contract, digest of the weights and policy of a training checkpoint or a model folder."""
    if not (folder / CONTRACT_FILE).is_file():
        checkpoint = load_checkpoint(folder)
        data = save(exported_tensors(checkpoint.build_actor()))
        policy = ActingPolicy.of(checkpoint.build_actor())
        return checkpoint.contract, hashlib.sha256(data).hexdigest(), policy
    contract = PolicyContract.load(folder / CONTRACT_FILE)
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
    config = NetworkConfig.from_mapping(contract.network)
    with torch.no_grad():
        empty = Actor(config).dense()
    stored = iter(load(data)[name] for name, _ in dense.named_tensors(empty))
    # Both walk the weights in the same order; matrices get their 1x1 filters back.
    weights = dense.map_tensors(empty, lambda tensor: next(stored).reshape(tensor.shape))
    return contract, digest, ActingPolicy(config, weights)


def model_card(contract: PolicyContract, actor: Actor) -> str:
    """The card as Markdown; every figure is read from the contract or measured here."""
    config, origin = actor.config, contract.provenance
    errors = actor_errors(actor, steps=20, episodes=2, seed=0)
    exact = [error for error in errors if error.exact_on_pixels]
    other = [error for error in errors if not error.exact_on_pixels]
    measured = SuccessRate(origin.evaluation_successes, origin.evaluation_episodes)
    success = str(measured) if origin.evaluation_episodes else "not measured"
    symmetric = "every part" if config.is_equivariant else "not every part (see contract)"
    lines = [
        f"# {contract.task}: recurrent policy, group {contract.group}",
        "",
        "| | |",
        "|---|---|",
        f"| success in simulation, deterministic policy | {success} |",
        f"| agent, preset, seed | {origin.agent}, {origin.preset}, {origin.seed} |",
        f"| environment steps, gradient steps | {origin.environment_steps},"
        f" {origin.gradient_steps} |",
        f"| code version | {origin.code_version} |",
        f"| trained parameters of the actor | {count_parameters(actor):,} |",
        f"| parts that respect {contract.group} | {symmetric} |",
        f"| largest equivariance error, elements exact on pixels | {_largest(exact)} |",
    ]
    if other:
        lines.append(f"| largest equivariance error, interpolated turns | {_largest(other)} |")
    lines += [
        f"| weights | `{WEIGHTS_FILE}`, sha256 `{contract.weights_sha256}` |",
        "",
        "Errors are the largest absolute difference of the Gaussian's mean before squashing, over"
        " 2 random histories of 20 steps.",
        "",
        "## Use",
        "",
        "Observation, action, workspace and network are described in `contract.json`; the robot"
        " reads nothing else. Load it with"
        " `equi_policy.deployed_policy.DeployedPolicy.load(folder)`; nothing is unpickled.",
        "",
        "## Limits",
        "",
        f"Trained in simulation for `{contract.task}` only, with episodes of at most"
        f" {contract.max_steps} steps. The success above says nothing about other objects,"
        " cameras or workspaces; rehearse in the simulated cell before moving a robot.",
        "",
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Entry point of `equi-export`."""
    parser = argparse.ArgumentParser(
        prog="equi-export",
        description="Turn a training checkpoint into a model folder for the robot.",
        epilog="Example: equi-export runs/block_picking/checkpoints/best models/block_picking",
    )
    parser.add_argument("checkpoint", type=Path, help="checkpoint folder")
    parser.add_argument("model", type=Path, help="model folder to write")
    parsed = parser.parse_args(arguments)
    console = Console(stderr=True)
    try:
        contract = export(load_checkpoint(parsed.checkpoint), parsed.model)
    except (CheckpointError, ExportError) as error:
        console.print(f"equi-export: {error}", markup=False, style="red")
        return 2
    console.print(
        f"{parsed.model}: {contract.task}, group {contract.group},"
        f" weights {contract.weights_sha256[:12]}",
        markup=False,
    )
    return 0


def _largest(errors: list[ElementError]) -> str:
    return f"{max(error.largest for error in errors):.1e}" if errors else "none"


def _write(path: Path, data: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    os.replace(partial, path)


if __name__ == "__main__":
    sys.exit(main())
