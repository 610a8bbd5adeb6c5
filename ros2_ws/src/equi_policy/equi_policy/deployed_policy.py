# SPDX-License-Identifier: MIT
"""Runs an exported recurrent policy: plain PyTorch, explicit state, nothing unpickled.

    policy = DeployedPolicy.load("models/block_picking")
    state = policy.initial_state()                      # once per episode
    action, state = policy.act(observation, state)
    state = state.with_executed(executed_action)        # what the robot really did, after clipping

The folder holds ``contract.json`` and ``policy.safetensors``. The contract names the digest of the
weights and one of itself; whatever was changed after export is refused before it is parsed. So is a
``probe.json`` beside them that was changed or is another model's. The action is the policy's mean.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.torch import load as parse_safetensors
from torch import Tensor
from torch.nn import functional

from equi_core.belief.probe import ProbeError
from equi_core.belief.probe_file import StoredProbe
from equi_core.contract import PolicyContract
from equi_core.files.tied_weights import untie_weights
from equi_policy.errors import ChangedProbeError, LayoutError, ObservationError, WeightsError
from equi_policy.layout import N_ACTIONS, PolicyLayout

CONTRACT_FILE = "contract.json"
WEIGHTS_FILE = "policy.safetensors"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class PolicyState:
    """Recurrent state between two steps of one episode; never changed in place.

    Attributes:
        hidden: (recurrent_channels,) LSTM output.
        cell: (recurrent_channels,) LSTM cell.
        previous_action: (5,) action executed last, zero before the first step.
        step: number of observations in this episode so far.
    """

    hidden: Tensor
    cell: Tensor
    previous_action: Tensor
    step: int = 0

    def with_executed(self, action: ArrayLike) -> PolicyState:
        """The same state with the action that was really executed (policy units, (5,))."""
        executed = np.asarray(action, dtype=np.float32)
        if executed.shape != (N_ACTIONS,) or not np.isfinite(executed).all():
            raise ObservationError(
                f"executed action must be {N_ACTIONS} finite numbers, got {action!r}"
            )
        return dataclasses.replace(self, previous_action=torch.from_numpy(executed.copy()))


@dataclass(frozen=True)
class PolicyStep:
    """One step of the policy, with what an operator may want to see.

    Attributes:
        action: (5,) float32 in [-1, 1], order (w, x, y, z, r).
        state: state for the next step; assumes that the action is executed as it is.
        std: (5,) standard deviation of the Gaussian before squashing: how undecided training left
            the policy here.
        state_norm: Euclidean norm of the LSTM's output; grows with evidence, 0 at the start.
    """

    action: NDArray[np.float32]
    state: PolicyState
    std: NDArray[np.float32]
    state_norm: float


class DeployedPolicy:
    """An exported actor. Holds only weights: the recurrent state is the caller's."""

    def __init__(self, contract: PolicyContract, tensors: dict[str, Tensor]) -> None:
        self.contract = contract
        self.layout = PolicyLayout.from_network(contract.network)
        if self.layout.image_px != contract.image.size_px:
            raise LayoutError(
                "observation_size",
                f"is {self.layout.image_px}, but image.size_px is {contract.image.size_px}",
            )
        tensors = _written_out(tensors, contract.group)
        _check_tensors(tensors, self.layout)
        self._weights = _Weights(self.layout, tensors)

    @classmethod
    def load(cls, folder: Path | str, *, allow_unsigned: bool = False) -> DeployedPolicy:
        """Read a model folder.

        Args:
            folder: model folder.
            allow_unsigned: take a contract of an older export, which has no digest of itself, and
                go on beside a changed probe, with a warning; for the simulated cell only.

        Raises:
            ContractError: the contract is missing, malformed, or was changed after export.
            LayoutError: the contract describes a network this class cannot run.
            WeightsError: the weights are missing, damaged, or not those of the contract.
            ChangedProbeError: the probe was changed, or is another model's.
        """
        folder = Path(folder)
        contract = PolicyContract.load(folder / CONTRACT_FILE, allow_unsigned=allow_unsigned)
        try:
            StoredProbe.load(folder, contract)
        except ProbeError as error:
            if not allow_unsigned:
                raise ChangedProbeError(str(error)) from error
            _LOG.warning("the folder was CHANGED: %s; on a real cell it is refused", error)
        return cls(contract, load_weights(folder / WEIGHTS_FILE, contract.weights_sha256))

    def initial_state(self) -> PolicyState:
        """State at the start of an episode: zero, as the invariance of the belief demands."""
        zeros = torch.zeros(self.layout.recurrent_channels)
        return PolicyState(zeros, zeros.clone(), torch.zeros(N_ACTIONS))

    def act(
        self, observation: NDArray[np.float32], state: PolicyState
    ) -> tuple[NDArray[np.float32], PolicyState]:
        """Action (5,) for an observation (2, S, S), and the state after it."""
        result = self.step(observation, state)
        return result.action, result.state

    def step(self, observation: NDArray[np.float32], state: PolicyState) -> PolicyStep:
        """Like ``act``, with the values for introspection."""
        depth, holding = self._read(observation)
        if state.hidden.shape != (self.layout.recurrent_channels,):
            raise ObservationError(
                f"state.hidden has shape {tuple(state.hidden.shape)}; this policy's state has"
                f" {self.layout.recurrent_channels} channels: begin with initial_state()"
            )
        with torch.inference_mode():
            mean, log_std, hidden, cell = self._weights.run(depth, holding, state)
            action = _squash(mean, self.layout.squash)
        next_state = PolicyState(hidden.clone(), cell.clone(), action.clone(), state.step + 1)
        return PolicyStep(
            action.numpy().copy(),
            next_state,
            log_std.exp().numpy().copy(),
            float(hidden.norm()),
        )

    def _read(self, observation: NDArray[np.float32]) -> tuple[Tensor, float]:
        size = self.layout.image_px
        array = np.asarray(observation, dtype=np.float32)
        if array.shape != (2, size, size):
            raise ObservationError(
                f"observation has shape {array.shape}; this policy reads (2, {size}, {size})"
            )
        if not np.isfinite(array).all():
            raise ObservationError(
                "observation holds a number that is not finite; fill unseen pixels before"
            )
        plane = array[1]
        if plane.min() != plane.max():
            raise ObservationError("observation[1], the holding flag, must be one value everywhere")
        return torch.from_numpy(np.ascontiguousarray(array[0])), float(plane[0, 0])


def load_policy(folder: Path | str) -> DeployedPolicy:
    """The policy of a model folder, such as `models/block_picking`; see `DeployedPolicy.load`."""
    return DeployedPolicy.load(folder)


class _Weights:
    """The tensors, arranged once for single-frame inference."""

    def __init__(self, layout: PolicyLayout, tensors: dict[str, Tensor]) -> None:
        self.layout = layout
        first = tensors["history.encoder.0.weight"]
        bias = tensors["history.encoder.0.bias"]
        # conv((depth - offset) * scale) + conv(flag) = conv'(depth) + bias' + flag * per_flag
        scaled = first[:, :1] * layout.depth_scale_per_m
        self.first_bias = bias - layout.depth_offset_m * scaled.sum(dim=(1, 2, 3))
        self.per_flag = first[:, 1].sum(dim=(1, 2))
        kernel, stride = layout.encoder_kernels[0], layout.encoder_strides[0]
        tiles = kernel % stride == 0 and layout.image_px % stride == 0
        self.block = stride if tiles else 1
        cells = kernel // self.block
        self.first_stride = stride // self.block
        self.first = (
            scaled.reshape(-1, cells, self.block, cells, self.block)
            .permute(0, 2, 4, 1, 3)
            .reshape(-1, self.block**2, cells, cells)
            .contiguous()
        )
        count = len(layout.encoder_channels)
        self.encoder = [
            (tensors[f"history.encoder.{i}.weight"], tensors[f"history.encoder.{i}.bias"])
            for i in range(1, count)
        ]
        self.action = None
        if layout.action_channels:
            self.action = tensors["history.action.weight"], tensors["history.action.bias"]
        self.lstm = tensors["history.lstm.weight"], tensors["history.lstm.bias"]
        self.head = [
            (tensors[f"head.{i}.weight"], tensors[f"head.{i}.bias"])
            for i in range(len(layout.head_channels))
        ]
        self.mean = tensors["mean.weight"], tensors["mean.bias"]
        self.log_std = tensors["log_std.weight"], tensors["log_std.bias"]

    def run(
        self, depth: Tensor, holding: float, state: PolicyState
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean and log-std (5,) before squashing, and the LSTM's hidden and cell state."""
        layout = self.layout
        feature = self._encode(depth, holding)
        parts = [feature]
        if self.action is not None:
            parts.append(torch.relu(functional.linear(state.previous_action, *self.action)))
        gates = functional.linear(torch.cat([*parts, state.hidden]), *self.lstm)
        i, f, g, o = gates.chunk(4)
        cell = f.sigmoid() * state.cell + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell.tanh()
        top = torch.cat([hidden, feature]) if layout.skip_connection else hidden
        for weight, bias in self.head:
            top = torch.relu(functional.linear(top, weight, bias))
        log_std = functional.linear(top, *self.log_std).clamp(*layout.log_std_range)
        return functional.linear(top, *self.mean), log_std, hidden, cell

    def _encode(self, depth: Tensor, holding: float) -> Tensor:
        cells = self.layout.image_px // self.block
        blocks = depth.view(cells, self.block, cells, self.block).permute(1, 3, 0, 2)
        pixels = blocks.reshape(1, self.block**2, cells, cells)
        bias = self.first_bias + holding * self.per_flag
        feature = functional.conv2d(pixels, self.first, bias, self.first_stride).relu_()
        for (weight, layer_bias), stride in zip(
            self.encoder, self.layout.encoder_strides[1:], strict=True
        ):
            feature = functional.conv2d(feature, weight, layer_bias, stride).relu_()
        return feature.flatten()


def load_weights(path: Path, sha256: str) -> dict[str, Tensor]:
    """Tensors of a safetensors file whose digest is ``sha256``; no code in it can run."""
    if not sha256:
        raise WeightsError(
            "contract field 'weights_sha256'", "is empty; export the policy with equi-export"
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise WeightsError(str(path), f"cannot be read: {error.strerror}") from error
    digest = hashlib.sha256(data).hexdigest()
    if digest != sha256:
        raise WeightsError(
            "contract field 'weights_sha256'",
            f"is {sha256[:12]}..., but {path.name} ({len(data)} bytes) has {digest[:12]}...: the"
            " file is truncated, changed, or of another export; copy the whole model folder again",
        )
    try:
        return parse_safetensors(data)
    except (SafetensorError, ValueError) as error:
        raise WeightsError(str(path), f"is not a whole safetensors file: {error}") from error


def _written_out(tensors: dict[str, Tensor], group: str) -> dict[str, Tensor]:
    """Every filter of the policy; files of earlier exports hold them all, newer ones each once."""
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32:
            raise WeightsError(f"tensor '{name}'", f"is {tensor.dtype}; must be torch.float32")
    try:
        dense = untie_weights({name: tensor.numpy() for name, tensor in tensors.items()}, group)
    except ValueError as error:  # TiedWeightsError is one
        raise WeightsError("policy.safetensors", f"{error}; export the policy again") from error
    return {name: torch.from_numpy(array) for name, array in dense.items()}


def _check_tensors(tensors: dict[str, Tensor], layout: PolicyLayout) -> None:
    wanted = layout.tensor_shapes()
    for name in sorted(wanted.keys() ^ tensors.keys()):
        problem = "is missing" if name in wanted else "is not part of the contract's network"
        raise WeightsError(f"tensor '{name}'", f"{problem}; weights of another architecture")
    for name, shape in wanted.items():
        tensor = tensors[name]
        if tuple(tensor.shape) != shape or tensor.dtype != torch.float32:
            raise WeightsError(
                f"tensor '{name}'",
                f"is {tensor.dtype} {tuple(tensor.shape)}; the contract's network needs"
                f" torch.float32 {shape}",
            )
        if not torch.isfinite(tensor).all():
            raise WeightsError(f"tensor '{name}'", "holds a number that is not finite")


def _squash(raw: Tensor, kind: str) -> Tensor:
    squashed = torch.tanh(raw)
    if kind == "radial":  # x and y along their common direction
        radius = torch.sqrt(raw[1].square() + raw[2].square() + 1e-12)
        squashed[1:3] = raw[1:3] * (torch.tanh(radius) / radius)
    return squashed
