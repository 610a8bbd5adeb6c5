# SPDX-License-Identifier: MIT
"""The network layout as the contract stores it, and the tensors that a policy of it consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equi_policy.errors import LayoutError

LAYOUT_FORMAT = 1
N_ACTIONS = 5


@dataclass(frozen=True)
class PolicyLayout:
    """Sizes of a recurrent actor on a depth image and a holding flag."""

    image_px: int
    encoder_channels: tuple[int, ...]
    encoder_kernels: tuple[int, ...]
    encoder_strides: tuple[int, ...]
    action_channels: int  # embedding of the previously executed action; 0: not an input
    recurrent_channels: int
    head_channels: tuple[int, ...]
    skip_connection: bool
    squash: str
    log_std_range: tuple[float, float]
    depth_offset_m: float
    depth_scale_per_m: float

    @classmethod
    def from_network(cls, network: Mapping[str, Any]) -> PolicyLayout:
        """Read the contract's ``network`` entry; raises LayoutError naming what does not fit."""
        if network.get("format") != LAYOUT_FORMAT:
            raise LayoutError(
                "format", f"is {network.get('format')!r}; this version runs {LAYOUT_FORMAT}"
            )
        _require(network, "observation", "depth")
        _require(network, "actions", "continuous")
        if network.get("memory", "lstm") != "lstm":  # written only where it is another
            raise LayoutError("memory", f"is {network['memory']!r}; the robot runs 'lstm' only")
        # A random start is an ablation for training; a robot needs a reproducible policy.
        _require(network, "initial_state", "zero")
        if network.get("squash") not in ("tanh", "radial"):
            raise LayoutError("squash", f"is {network.get('squash')!r}; known: tanh, radial")
        layout = cls(
            image_px=_count(network, "observation_size"),
            encoder_channels=_counts(network, "encoder_channels"),
            encoder_kernels=_counts(network, "encoder_kernels"),
            encoder_strides=_counts(network, "encoder_strides"),
            action_channels=_count(network, "action_channels", least=0),
            recurrent_channels=_count(network, "recurrent_channels"),
            head_channels=_counts(network, "head_channels"),
            skip_connection=_flag(network, "skip_connection"),
            squash=str(network["squash"]),
            log_std_range=_range(network, "log_std_range"),
            depth_offset_m=_number(network, "depth_offset_m"),
            depth_scale_per_m=_number(network, "depth_scale_per_m"),
        )
        layout._check_encoder()
        return layout

    @property
    def feature_channels(self) -> int:
        """Channels of the encoder's output."""
        return self.encoder_channels[-1]

    @property
    def lstm_input_channels(self) -> int:
        """Channels that enter the LSTM beside its own output."""
        return self.feature_channels + self.action_channels

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor of the weights file."""
        shapes: dict[str, tuple[int, ...]] = {}
        source = 2
        for index, (width, kernel) in enumerate(
            zip(self.encoder_channels, self.encoder_kernels, strict=True)
        ):
            shapes[f"history.encoder.{index}.weight"] = (width, source, kernel, kernel)
            shapes[f"history.encoder.{index}.bias"] = (width,)
            source = width
        if self.action_channels:
            shapes["history.action.weight"] = (self.action_channels, N_ACTIONS)
            shapes["history.action.bias"] = (self.action_channels,)
        hidden = self.recurrent_channels
        shapes["history.lstm.weight"] = (4 * hidden, self.lstm_input_channels + hidden)
        shapes["history.lstm.bias"] = (4 * hidden,)
        source = hidden + (self.feature_channels if self.skip_connection else 0)
        for index, width in enumerate(self.head_channels):
            shapes[f"head.{index}.weight"] = (width, source)
            shapes[f"head.{index}.bias"] = (width,)
            source = width
        for name in ("mean", "log_std"):
            shapes[f"{name}.weight"] = (N_ACTIONS, source)
            shapes[f"{name}.bias"] = (N_ACTIONS,)
        return shapes

    def _check_encoder(self) -> None:
        lengths = [self.encoder_channels, self.encoder_kernels, self.encoder_strides]
        if len({len(item) for item in lengths}) != 1 or not self.encoder_channels:
            raise LayoutError(
                "encoder_channels",
                f"is {list(self.encoder_channels)}; channels, kernels and strides must list one"
                " value per encoder layer",
            )
        size = self.image_px
        for kernel, stride in zip(self.encoder_kernels, self.encoder_strides, strict=True):
            if kernel > size:
                raise LayoutError(
                    "encoder_kernels", f"is {list(self.encoder_kernels)}; {size} pixels are left"
                )
            size = (size - kernel) // stride + 1
        if size != 1:
            raise LayoutError("encoder_kernels", f"leave {size} x {size} pixels; must leave 1")
        if not self.head_channels:
            raise LayoutError("head_channels", "is empty; the head needs a hidden layer")
        low, high = self.log_std_range
        if low >= high:
            raise LayoutError("log_std_range", f"is {[low, high]}; must grow")


def _get(network: Mapping[str, Any], name: str) -> Any:
    if name not in network:
        raise LayoutError(name, "is missing; export the checkpoint again")
    return network[name]


def _require(network: Mapping[str, Any], name: str, wanted: str) -> None:
    if _get(network, name) != wanted:
        raise LayoutError(name, f"is {network[name]!r}; the robot runs {wanted!r} only")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(network: Mapping[str, Any], name: str, least: int = 1) -> int:
    value = _get(network, name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 65536:
        raise LayoutError(name, f"is {value!r}; must be a whole number from {least} to 65536")
    return value


def _counts(network: Mapping[str, Any], name: str) -> tuple[int, ...]:
    values = _get(network, name)
    if not isinstance(values, list):
        raise LayoutError(name, f"is {values!r}; must be a list of whole numbers")
    return tuple(_count({name: value}, name) for value in values)


def _flag(network: Mapping[str, Any], name: str) -> bool:
    value = _get(network, name)
    if not isinstance(value, bool):
        raise LayoutError(name, f"is {value!r}; must be true or false")
    return value


def _number(network: Mapping[str, Any], name: str) -> float:
    value = _get(network, name)
    if not _is_number(value):
        raise LayoutError(name, f"is {value!r}; must be a number")
    return float(value)


def _range(network: Mapping[str, Any], name: str) -> tuple[float, float]:
    values = _get(network, name)
    if not isinstance(values, list) or len(values) != 2 or not all(map(_is_number, values)):
        raise LayoutError(name, f"is {values!r}; must be two numbers")
    return float(values[0]), float(values[1])
