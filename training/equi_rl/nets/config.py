# SPDX-License-Identifier: MIT
"""Frozen description of a network: what the contract stores and every builder reads.

Sizes are channel counts. A width that carries regular fields must be a multiple of the group's
order; the error names the field. ``reference_config`` gives the sizes of the published agent.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from equi_rl.nets.memories import memory_named
from equi_rl.nets.representations import layout_named
from equi_rl.nets.symmetry import ACTION, Group, Layout, SymmetryError, group_named, trivial

CONFIG_FORMAT = 1
GROUP_CHOICES = ("C4", "C8", "D4", "D8")  # planar groups a robot policy may use
_TUPLES = (
    "encoder_channels",
    "encoder_kernels",
    "encoder_strides",
    "head_channels",
    "log_std_range",
)


# Fields younger than the format: written only where they are not the default, so that the mappings
# of earlier actors and critics stay what they were.
_OPTIONAL = (
    *("critic_heads", "critic_layer_norm"),
    *("memory", "observation_layout", "action_layout"),
)


class ArchitectureError(ValueError):
    """A network description that cannot be built; the message names the field."""


class Combination(str, Enum):
    """Which parts of an agent respect the symmetry (the paper's main agent and its ablations)."""

    EQUIVARIANT = "equivariant"
    ACTOR_ONLY = "actor-only"
    CRITIC_ONLY = "critic-only"
    PLAIN_LSTM = "plain-lstm"
    PLAIN = "plain"


@dataclass(frozen=True)
class NetworkConfig:
    """Architecture of one recurrent network (actor or critic)."""

    group: str = "C4"
    observation: str = "depth"  # depth image and holding flag | array: any vector or image
    observation_size: int = 84  # pixels of a side; 1: a vector
    actions: str = "continuous"  # (w, x, y, z, r), or as action_layout says
    n_actions: int = 5
    encoder_channels: tuple[int, ...] = (32, 64, 64, 64, 64, 128)
    encoder_kernels: tuple[int, ...] = (8, 4, 3, 3, 3, 3)
    encoder_strides: tuple[int, ...] = (4, 2, 1, 1, 1, 1)
    action_channels: int = 16  # embedding of the previous action; 0: it is not an input
    recurrent_channels: int = 128
    head_channels: tuple[int, ...] = (128, 128)
    critic_action_channels: int = 144  # embedding of the action whose value is asked
    skip_connection: bool = True  # heads see the encoder's feature beside the LSTM's output
    equivariant_encoder: bool = True
    equivariant_lstm: bool = True
    equivariant_heads: bool = True  # action embeddings and heads
    log_std_xy: str = "permuted"  # permuted: x and y swap with the axes | tied: one value
    log_std_range: tuple[float, float] = (-20.0, 2.0)
    squash: str = "tanh"  # tanh per component | radial: x, y squashed along their direction
    initial_state: str = "zero"  # zero | random (ablation: breaks the symmetry)
    depth_offset_m: float = 0.15  # the encoder sees (depth - offset) * scale
    depth_scale_per_m: float = 10.0
    critic_heads: int = 2  # values that a critic has of an action
    critic_layer_norm: bool = False  # normalise the hidden layers of a critic's heads
    memory: str = "lstm"  # lstm | none (feed-forward) | what `register_memory` added
    observation_layout: str = ""  # of an array's channels, e.g. "trivial:1,sign:1"
    action_layout: str = ""  # of the action's components, e.g. "vector:2"; "": (w, x, y, z, r)

    def __post_init__(self) -> None:
        for name in _TUPLES:
            object.__setattr__(self, name, tuple(getattr(self, name)))
        self._check_choices()
        group = self._check_group()
        self._check_sizes()
        self._check_widths(group)

    @property
    def symmetry(self) -> Group:
        """The group object named by ``group``."""
        return group_named(self.group)

    @property
    def observation_channels(self) -> Layout:
        """What the channels of an observation are."""
        if self.observation == "depth":
            return trivial(2)  # depth and holding planes
        return layout_named(self.observation_layout)

    @property
    def action_components(self) -> Layout:
        """What the components of an action are."""
        return layout_named(self.action_layout) if self.action_layout else ACTION

    @property
    def is_equivariant(self) -> bool:
        """Whether every part respects the group."""
        return self.equivariant_encoder and self.equivariant_lstm and self.equivariant_heads

    @property
    def feature_channels(self) -> int:
        """Channels that leave the encoder."""
        return self.encoder_channels[-1]

    @property
    def recurrent_input_channels(self) -> int:
        """Channels that enter the LSTM beside its own output."""
        return self.feature_channels + self.action_channels

    @property
    def head_input_channels(self) -> int:
        """Channels that enter the actor's head."""
        return self.recurrent_channels + (self.feature_channels if self.skip_connection else 0)

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able mapping for the contract; ``from_mapping`` is its inverse."""
        mapping = dataclasses.asdict(self)
        mapping.update({name: list(mapping[name]) for name in _TUPLES})
        for name in _OPTIONAL:
            if mapping[name] == type(self).__dataclass_fields__[name].default:
                del mapping[name]
        return {"format": CONFIG_FORMAT, **mapping}

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> NetworkConfig:
        """Rebuild a config; unknown, missing or ill-typed entries raise ArchitectureError."""
        values = dict(mapping)
        version = values.pop("format", None)
        if version != CONFIG_FORMAT:
            raise ArchitectureError(
                f"network.format = {version!r}; this version reads {CONFIG_FORMAT}"
            )
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for name in (fields.keys() ^ values.keys()) - ({*_OPTIONAL} - values.keys()):
            kind = "is not known" if name in values else "is missing"
            raise ArchitectureError(f"network.{name} {kind}; export the checkpoint again")
        defaults = cls()
        for name, value in values.items():
            _check_type(name, value, getattr(defaults, name))
        return cls(**values)

    def _check_choices(self) -> None:
        choices = {
            "observation": ("depth", "array"),
            "actions": ("continuous",),
            "log_std_xy": ("permuted", "tied"),
            "squash": ("tanh", "radial"),
            "initial_state": ("zero", "random"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ArchitectureError(
                    f"network.{name} = {getattr(self, name)!r}; allowed: {', '.join(allowed)}"
                )

    def _check_group(self) -> Group:
        try:
            group = group_named(self.group)
        except SymmetryError as error:
            raise ArchitectureError(f"network.{error}") from error
        if group.on_line and self.observation_size > 1:
            raise ArchitectureError(
                f"network.group = {self.group!r} acts on a line, not on images; use a planar group"
            )
        self._check_layouts()
        isotropic = self.log_std_xy == "tied"
        if not group.permutes_axes and not isotropic and self.equivariant_heads:
            raise ArchitectureError(
                f"network.log_std_xy = 'permuted' is not a representation of {self.group}:"
                " its rotations mix the axes; use 'tied'"
            )
        if self.squash == "radial" and not isotropic:
            raise ArchitectureError("network.squash = 'radial' needs log_std_xy = 'tied'")
        return group

    def _check_layouts(self) -> None:
        try:
            memory_named(self.memory)
            observation, action = self.observation_channels, self.action_components
        except ValueError as error:
            raise ArchitectureError(f"network.{error}") from error
        if self.n_actions != action.channels:
            raise ArchitectureError(
                f"network.n_actions = {self.n_actions}; network.action_layout ="
                f" {self.action_layout or '(w, x, y, z, r)'!r} has {action.channels} components"
            )
        if self.action_layout and self.log_std_xy != "tied":
            raise ArchitectureError(
                "network.log_std_xy = 'permuted' belongs to the action (w, x, y, z, r);"
                " use 'tied' with an action_layout"
            )
        if self.observation_size > 1 and any(kind != "trivial" for kind, _ in observation.parts):
            raise ArchitectureError(
                f"network.observation_layout = {self.observation_layout!r}; the channels of an"
                " image are 'trivial': the group moves its pixels"
            )

    def _check_sizes(self) -> None:
        counts = {len(self.encoder_channels), len(self.encoder_kernels), len(self.encoder_strides)}
        if len(counts) != 1:
            raise ArchitectureError(
                "network.encoder_channels, encoder_kernels and encoder_strides differ in length"
            )
        if not self.encoder_channels:
            raise ArchitectureError("network.encoder_channels = (); an image needs an encoder")
        size = self.observation_size
        for layer, (kernel, stride) in enumerate(
            zip(self.encoder_kernels, self.encoder_strides, strict=True)
        ):
            if kernel < 1 or stride < 1 or size < kernel or (size - kernel) % stride:
                raise ArchitectureError(
                    f"network.encoder_kernels[{layer}] = {kernel} with stride {stride} does not"
                    f" tile {size} pixels, which a symmetric encoder needs"
                )
            size = (size - kernel) // stride + 1
        if size != 1:
            raise ArchitectureError(
                f"network.encoder_kernels leave {size} x {size} pixels; the feature must be 1 x 1"
            )
        if self.critic_heads < 1:
            raise ArchitectureError(f"network.critic_heads = {self.critic_heads}; must be positive")
        low, high = self.log_std_range
        if not low < high:
            raise ArchitectureError(f"network.log_std_range = {(low, high)} is empty")
        if not self.depth_scale_per_m > 0.0:
            raise ArchitectureError(
                f"network.depth_scale_per_m = {self.depth_scale_per_m}; must be positive"
            )

    def _check_widths(self, group: Group) -> None:
        widths: list[tuple[str, int, bool]] = [
            (f"encoder_channels[{i}]", width, self.equivariant_encoder)
            for i, width in enumerate(self.encoder_channels)
        ]
        widths += [
            (f"head_channels[{i}]", width, self.equivariant_heads)
            for i, width in enumerate(self.head_channels)
        ]
        # Regular features that a part reads must divide as well as those it writes.
        shared = self.equivariant_lstm or self.equivariant_heads
        widths.append(("encoder_channels[-1]", self.encoder_channels[-1], shared))
        widths.append(("recurrent_channels", self.recurrent_channels, shared))
        if self.action_channels:
            widths.append(("action_channels", self.action_channels, shared))
        widths.append(("critic_action_channels", self.critic_action_channels, shared))
        for name, width, divides in widths:
            if width < 1:
                raise ArchitectureError(f"network.{name} = {width}; must be positive")
            if divides and width % group.order:
                raise ArchitectureError(
                    f"network.{name} = {width} does not divide into regular fields of"
                    f" {self.group}; use a multiple of {group.order}"
                )


def reference_config(group: str = "C4", match: str = "fields", **changes: Any) -> NetworkConfig:
    """Sizes of the published agent for a planar group.

    Args:
        group: C4, C8, D4 or D8.
        match: ``fields`` keeps the published number of fields in the encoder's hidden layers,
            so larger groups have more channels; ``channels`` keeps C4's channel counts (cheaper).
        changes: further fields of NetworkConfig.
    """
    if match not in ("fields", "channels"):
        raise ArchitectureError(f"match = {match!r}; allowed: fields, channels")
    values: dict[str, Any] = {"group": group}
    try:
        symmetry = group_named(group)
    except SymmetryError as error:
        raise ArchitectureError(f"network.{error}") from error
    if match == "fields":
        n = symmetry.order
        values["encoder_channels"] = (8 * n, 16 * n, 16 * n, 16 * n, 16 * n, 128)
    if not symmetry.permutes_axes:
        values["log_std_xy"] = "tied"
    return NetworkConfig(**{**values, **changes})


def plain_twin(config: NetworkConfig) -> NetworkConfig:
    """The same widths without any symmetry."""
    return dataclasses.replace(
        config, equivariant_encoder=False, equivariant_lstm=False, equivariant_heads=False
    )


def scaled_plain_twin(config: NetworkConfig, factor: float) -> NetworkConfig:
    """A plain twin whose hidden widths are multiplied by ``factor`` (at least 1 channel each)."""

    def scale(width: int) -> int:
        return max(1, round(width * factor))

    return dataclasses.replace(
        plain_twin(config),
        encoder_channels=tuple(scale(width) for width in config.encoder_channels),
        action_channels=scale(config.action_channels) if config.action_channels else 0,
        recurrent_channels=scale(config.recurrent_channels),
        head_channels=tuple(scale(width) for width in config.head_channels),
        critic_action_channels=scale(config.critic_action_channels),
    )


def _check_type(name: str, value: Any, example: Any) -> None:
    if isinstance(example, tuple):
        numbers = (int, float) if name == "log_std_range" else int
        fits = isinstance(value, list | tuple) and all(
            isinstance(item, numbers) and not isinstance(item, bool) for item in value
        )
        fits = fits and (name != "log_std_range" or len(value) == 2)
    elif isinstance(example, bool):
        fits = isinstance(value, bool)
    elif isinstance(example, float):
        fits = isinstance(value, int | float) and not isinstance(value, bool)
    else:
        fits = isinstance(value, type(example)) and not isinstance(value, bool)
    if not fits:
        raise ArchitectureError(f"network.{name} = {value!r}; expected a value like {example!r}")
