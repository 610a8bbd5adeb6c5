# SPDX-License-Identifier: MIT
"""The policy contract: everything about observation and action that travels with the weights.

`contract.json` lies beside `policy.safetensors`. The training environment and the robot build
their observation and decode their action from the same contract, so nothing about either is
configured twice. Reading is strict: an unknown, missing, mistyped or out-of-range field is refused
by name, and nothing is guessed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from equi_core.files.plain_data import PlainDataError, parse_json, read_text
from equi_core.strict_fields import FieldError, plain_fields, read_fields

_LOG = logging.getLogger(__name__)
CONTRACT_VERSION = 1
ACTION_ORDER = ("w", "x", "y", "z", "r")
"""Order of the policy vector: closedness, three steps along base_link axes, yaw step."""
TASKS_WITH_GOAL = frozenset({"block_pushing"})
"""Tasks whose goal must be known before an episode: a camera cannot see it."""
_DIGEST = "contract_sha256"
"""Name of the digest in contract.json: over all other fields, the weights' digest included."""


class ContractError(ValueError):
    """A contract is malformed, of another version, or does not match; names the field."""

    def __init__(self, field_name: str, problem: str) -> None:
        super().__init__(f"contract field '{field_name}': {problem}")
        self.field_name = field_name


@dataclass(frozen=True)
class ImageSpec:
    """How the top-down depth observation is drawn; the defaults are the paper's and the 2F-85's."""

    size_px: int = 84
    """Rows and columns of the square image."""
    view_m: float = 0.40
    """Side of the square seen by the image, centred on the TCP [m]."""
    camera_above_tcp_m: float = 0.06
    """Height of the virtual orthographic camera above the TCP [m]; depth counts from there."""
    finger_width_m: float = 0.022
    """Extent of a drawn finger across the closing axis [m]."""
    finger_thickness_m: float = 0.022
    """Extent of a drawn finger along the closing axis, outwards from its pad [m]."""
    max_opening_m: float = 0.085
    """Gap between the pads of the fully open gripper [m]."""
    goal_pad_m: float = 0.09
    """Side of the goal pad, drawn only for tasks that have one [m]."""
    goal_pad_depth_m: float = 0.02
    """How much deeper than the table the goal pad is drawn [m]."""

    def __post_init__(self) -> None:
        _require(8 <= self.size_px <= 1024, "image.size_px", self.size_px, "8 to 1024")
        for name in ("view_m", "finger_width_m", "finger_thickness_m", "max_opening_m"):
            _require_positive("image", self, name)
        for name in ("camera_above_tcp_m", "goal_pad_m", "goal_pad_depth_m"):
            _require(
                0 <= getattr(self, name) < math.inf, f"image.{name}", getattr(self, name), ">= 0"
            )

    @property
    def pixel_m(self) -> float:
        """Side of one pixel on the table [m]."""
        return self.view_m / self.size_px


@dataclass(frozen=True)
class ActionSpec:
    """What one unit of the policy vector means on the robot."""

    max_step_m: float = 0.05
    """Largest step along each base_link axis [m]; policy +-1 maps to it."""
    max_yaw_step_rad: float = math.pi / 8
    """Largest turn of the gripper about the vertical [rad]; policy +-1 maps to it."""

    def __post_init__(self) -> None:
        _require_positive("action", self, "max_step_m")
        _require_positive("action", self, "max_yaw_step_rad")


@dataclass(frozen=True)
class Workspace:
    """The box that the TCP may not leave, in base_link [m]."""

    x_min_m: float = 0.3
    x_max_m: float = 0.7
    y_min_m: float = -0.2
    y_max_m: float = 0.2
    z_min_m: float = 0.01
    z_max_m: float = 0.25

    def __post_init__(self) -> None:
        for axis in "xyz":
            low, high = getattr(self, f"{axis}_min_m"), getattr(self, f"{axis}_max_m")
            _require(
                math.isfinite(low) and math.isfinite(high) and low < high,
                f"workspace.{axis}_min_m",
                (low, high),
                f"finite and below {axis}_max_m",
            )

    @property
    def lower_m(self) -> tuple[float, float, float]:
        """Corner with the smallest coordinates [m]."""
        return (self.x_min_m, self.y_min_m, self.z_min_m)

    @property
    def upper_m(self) -> tuple[float, float, float]:
        """Corner with the largest coordinates [m]."""
        return (self.x_max_m, self.y_max_m, self.z_max_m)

    @property
    def centre_xy_m(self) -> tuple[float, float]:
        """Centre of the box on the table [m]: the pivot of the task's rotations."""
        return ((self.x_min_m + self.x_max_m) / 2, (self.y_min_m + self.y_max_m) / 2)


@dataclass(frozen=True)
class Provenance:
    """Where the weights come from; says nothing about how to run them."""

    code_version: str = "unknown"
    agent: str = "unknown"
    preset: str = "unknown"
    seed: int = 0
    environment_steps: int = 0
    gradient_steps: int = 0
    evaluation_successes: int = 0
    evaluation_episodes: int = 0

    def __post_init__(self) -> None:
        for name in ("environment_steps", "gradient_steps", "evaluation_episodes"):
            _require(
                getattr(self, name) >= 0, f"provenance.{name}", getattr(self, name), "at least 0"
            )
        _require(
            0 <= self.evaluation_successes <= self.evaluation_episodes,
            "provenance.evaluation_successes",
            self.evaluation_successes,
            f"between 0 and evaluation_episodes = {self.evaluation_episodes}",
        )


@dataclass(frozen=True)
class PolicyContract:
    """One policy's whole interface. Immutable; JSON in and out."""

    task: str
    group: str = "C4"
    image: ImageSpec = field(default_factory=ImageSpec)
    action: ActionSpec = field(default_factory=ActionSpec)
    workspace: Workspace = field(default_factory=Workspace)
    control_period_s: float = 0.5
    """Least time from one policy step to the next on the robot [s]."""
    max_steps: int = 50
    """Steps after which an episode is truncated."""
    network: Mapping[str, Any] = field(default_factory=dict)
    """Network layout, read by the policy package; plain JSON values."""
    weights_sha256: str = ""
    """Digest of the weights file; empty until exported."""
    provenance: Provenance = field(default_factory=Provenance)
    version: int = CONTRACT_VERSION

    def __post_init__(self) -> None:
        _require(
            self.version == CONTRACT_VERSION,
            "version",
            self.version,
            f"{CONTRACT_VERSION}; export the policy again with this version of the code",
        )
        _require(
            re.fullmatch(r"[a-z][a-z0-9_]*", self.task) is not None,
            "task",
            self.task,
            "a lower-case identifier such as block_picking",
        )
        _require(
            re.fullmatch(r"[CD][1-9][0-9]?", self.group) is not None,
            "group",
            self.group,
            "C<n> or D<n> with n below 100, for example C4",
        )
        _require_positive("", self, "control_period_s")
        _require(1 <= self.max_steps <= 10_000, "max_steps", self.max_steps, "1 to 10,000")
        _require(
            re.fullmatch(r"([0-9a-f]{64})?", self.weights_sha256) is not None,
            "weights_sha256",
            self.weights_sha256,
            "64 lower-case hexadecimal digits, or empty before export",
        )
        # A JSON round trip checks that the layout is plain data and detaches it from the caller.
        try:
            plain = json.loads(json.dumps(dict(self.network), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ContractError("network", f"holds a value that JSON cannot ({error})") from error
        object.__setattr__(self, "network", MappingProxyType(plain))

    @property
    def sha256(self) -> str:
        """Digest of every field, that of the weights included: it names the whole model."""
        return hashlib.sha256(_canonical(plain_fields(self))).hexdigest()

    @property
    def has_goal(self) -> bool:
        """Whether the task has a goal on the table, which must be drawn into the image."""
        return self.task in TASKS_WITH_GOAL

    def to_json(self) -> str:
        """The contract as indented JSON with every field present."""
        return _indented(plain_fields(self))

    @classmethod
    def from_json(cls, text: str, *, allow_unsigned: bool = True) -> PolicyContract:
        """Read a contract; raises ContractError that names the offending field.

        Args:
            text: JSON; if it names a digest of itself (`contract_sha256`), that must be right.
            allow_unsigned: take a contract without such a digest.
        """
        try:
            data = parse_json(text)
        except PlainDataError as error:
            raise ContractError("(file)", str(error)) from error
        stated = data.pop(_DIGEST, None) if isinstance(data, dict) else None
        if stated is None and not allow_unsigned:
            raise ContractError(
                _DIGEST,
                "is missing: the contract is of an older export and may have been changed; it "
                "may drive the simulated cell only. Export the policy again with equi-export",
            )
        contract = cls._from_fields(data)
        if stated is not None and stated != contract.sha256:
            raise ContractError(
                _DIGEST,
                f"is {str(stated)[:12]}..., but the contract has {contract.sha256[:12]}...: it was "
                "changed after export; copy the whole model folder again, or export the policy",
            )
        return contract

    @classmethod
    def _from_fields(cls, data: Any) -> PolicyContract:
        # Said first, because another version may well have other fields.
        if isinstance(data, dict) and data.get("version", CONTRACT_VERSION) != CONTRACT_VERSION:
            version = str(data["version"])[:80]
            _require(False, "version", version, f"{CONTRACT_VERSION}; export again")
        try:
            return read_fields(cls, data)
        except FieldError as error:
            raise ContractError(error.name, error.problem) from error

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        # A read-only mapping cannot be sent to another process; JSON can.
        return type(self).from_json, (self.to_json(),)

    def save(self, path: Path) -> None:
        """Write the contract with its digest; a reader sees the old file or the whole new one."""
        partial = path.with_name(path.name + ".partial")
        text = _indented({**plain_fields(self), _DIGEST: self.sha256})
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)

    @classmethod
    def load(cls, path: Path, *, allow_unsigned: bool = False) -> PolicyContract:
        """Read a contract file.

        Args:
            path: contract.json.
            allow_unsigned: take one of an older export, which has no digest of itself and may have
                been changed: for training and the simulated cell, never for a real one.
        """
        if not path.is_file():
            raise ContractError(
                "(file)", f"{path} does not exist; a policy folder holds contract.json"
            )
        try:
            text = read_text(path)
        except PlainDataError as error:
            raise ContractError("(file)", f"{path} {error}") from error
        contract = cls.from_json(text, allow_unsigned=allow_unsigned)
        if _DIGEST not in text:
            _LOG.warning(
                "%s has no %s: an older export, which may have been CHANGED since; it is accepted "
                "in the simulated cell only. Export the policy again with equi-export",
                path,
                _DIGEST,
            )
        return contract


def _canonical(plain: Any) -> bytes:
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _indented(plain: Any) -> str:
    return json.dumps(plain, indent=2, sort_keys=True, allow_nan=False) + "\n"


def _require(condition: bool, name: str, value: object, allowed: str) -> None:
    if not condition:
        raise ContractError(name, f"is {value!r}; it must be {allowed}")


def _require_positive(prefix: str, spec: object, name: str) -> None:
    value = getattr(spec, name)
    full_name = f"{prefix}.{name}" if prefix else name
    _require(math.isfinite(value) and value > 0, full_name, value, "a positive number")
