# SPDX-License-Identifier: MIT
"""Training checkpoints without pickle: one safetensors file and one JSON file.

A checkpoint folder holds ``checkpoint.safetensors`` (the free parameters of actor and critic, and
whatever tensors the trainer adds, e.g. target weights and optimiser moments) and
``checkpoint.json`` (architectures, the policy's contract, the trainer's own plain data, and the
digest of the tensors). The JSON file is written last and names the digest: a folder whose writing
was interrupted is recognised, and reading never executes anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from equi_core.contract import ContractError, PolicyContract
from equi_core.files.plain_data import PlainDataError, parse_json
from equi_rl.data.atomic_file import write_atomically
from equi_rl.nets.config import ArchitectureError, NetworkConfig
from equi_rl.nets.networks import Actor, Critic

CHECKPOINT_FORMAT = 1
TENSORS_FILE = "checkpoint.safetensors"
JSON_FILE = "checkpoint.json"


class CheckpointError(ValueError):
    """A checkpoint that is missing, damaged, or of another architecture; names the entry."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint folder holds.

    Attributes:
        contract: observation, action and provenance; its ``network`` is the actor's architecture.
        critic: the critic's architecture, or None if no critic was stored.
        tensors: every tensor by dotted name; ``actor.*`` and ``critic.*`` are parameters.
        extra: the trainer's own plain data (counters, random states as lists, ...).
    """

    contract: PolicyContract
    critic: NetworkConfig | None
    tensors: Mapping[str, Tensor]
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def actor(self) -> NetworkConfig:
        """The actor's architecture."""
        return NetworkConfig.from_mapping(self.contract.network)

    def build_actor(self) -> Actor:
        """The actor with its trained parameters."""
        actor = Actor(self.actor)
        restore_parameters(actor, self.tensors, "actor")
        return actor

    def build_critic(self) -> Critic:
        """The critic with its trained parameters."""
        if self.critic is None:
            raise CheckpointError("critic: this checkpoint stores an actor only")
        critic = Critic(self.critic)
        restore_parameters(critic, self.tensors, "critic")
        return critic


def save_checkpoint(
    folder: Path,
    contract: PolicyContract,
    actor: Actor,
    critic: Critic | None = None,
    tensors: Mapping[str, Tensor] | None = None,
    extra: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint; ``contract.network`` must describe ``actor``."""
    if dict(contract.network) != actor.config.to_mapping():
        raise CheckpointError("contract.network does not describe the actor that is saved")
    everything = parameters_of(actor, "actor")
    if critic is not None:
        everything |= parameters_of(critic, "critic")
    for name, tensor in (tensors or {}).items():
        if name in everything:
            raise CheckpointError(f"tensor name {name!r} is taken by a parameter")
        everything[name] = tensor.detach().cpu().contiguous()
    data = save(everything)
    folder.mkdir(parents=True, exist_ok=True)
    description = {
        "format": CHECKPOINT_FORMAT,
        "tensors_sha256": hashlib.sha256(data).hexdigest(),
        "contract": json.loads(contract.to_json()),
        "critic": None if critic is None else critic.config.to_mapping(),
        "extra": dict(extra or {}),
    }
    write_atomically(folder / TENSORS_FILE, data)
    text = json.dumps(description, indent=2, sort_keys=True, allow_nan=False) + "\n"
    write_atomically(folder / JSON_FILE, text.encode())


def load_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint folder; raises CheckpointError naming what is wrong."""
    description = _read_description(folder / JSON_FILE)
    data = _read(folder / TENSORS_FILE)
    digest = hashlib.sha256(data).hexdigest()
    if digest != description.get("tensors_sha256"):
        raise CheckpointError(
            f"tensors_sha256: {TENSORS_FILE} ({len(data)} bytes) is not the file that"
            f" {JSON_FILE} describes; it is truncated, changed, or its writing was interrupted"
        )
    try:
        tensors = load(data)
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"{TENSORS_FILE} is not a whole safetensors file: {error}") from error
    try:
        contract = PolicyContract.from_json(json.dumps(description.get("contract")))
        network = NetworkConfig.from_mapping(contract.network)
        critic = description.get("critic")
        critic_config = None if critic is None else NetworkConfig.from_mapping(critic)
    except (ContractError, ArchitectureError) as error:
        raise CheckpointError(f"{JSON_FILE}: {error}") from error
    if contract.group != network.group:
        raise CheckpointError(
            f"{JSON_FILE}: contract.group = {contract.group}, network.group = {network.group}"
        )
    return Checkpoint(contract, critic_config, tensors, description.get("extra") or {})


def parameters_of(module: nn.Module, prefix: str) -> dict[str, Tensor]:
    """Free parameters by dotted name; escnn's constant bases are rebuilt, not stored."""
    # Cloned: actor and critic may share an encoder, and safetensors stores no memory twice.
    return {
        f"{prefix}.{name}": parameter.detach().clone(memory_format=torch.contiguous_format).cpu()
        for name, parameter in module.named_parameters()
    }


def restore_parameters(module: nn.Module, tensors: Mapping[str, Tensor], prefix: str) -> None:
    """Copy parameters into ``module``; a missing, foreign or misshapen one is refused by name."""
    wanted = dict(module.named_parameters(prefix=prefix))
    stored = {name for name in tensors if name.startswith(prefix + ".")}
    for name in sorted(wanted.keys() ^ stored):
        problem = "is missing" if name in wanted else "does not belong to this architecture"
        raise CheckpointError(f"tensor {name!r} {problem}")
    for name, parameter in wanted.items():
        if tensors[name].shape != parameter.shape:
            raise CheckpointError(
                f"tensor {name!r} has shape {tuple(tensors[name].shape)}; this architecture needs"
                f" {tuple(parameter.shape)}"
            )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(tensors[name])


def _read_description(path: Path) -> dict[str, Any]:
    try:
        description = parse_json(_read(path).decode("utf-8"))
    except (PlainDataError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path.name}: {error}") from error
    if not isinstance(description, dict) or description.get("format") != CHECKPOINT_FORMAT:
        found = description.get("format") if isinstance(description, dict) else description
        raise CheckpointError(f"{path.name}: format = {found!r}; this reads {CHECKPOINT_FORMAT}")
    return description


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be read ({error.strerror}); a checkpoint folder holds {JSON_FILE} and"
            f" {TENSORS_FILE}"
        ) from error
