# SPDX-License-Identifier: MIT
"""Cell files: which robot and cameras a cell has, and the parameters of its nodes.

A cell file is a ROS parameter file (`<node>: ros__parameters:`), so `--params-file` takes it as it
is. Its block `cell` holds what several nodes share; `CellFile.parameters` adds that to a node's own
block. Nodes check the values of their own parameters; here only the frame and the shared block are
checked, so that a misspelt block is found at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equi_core.cell_geometry import CellGeometry, GeometryRangeError
from equi_core.files.cell_ceilings import loosened_too_far
from equi_core.files.plain_data import PlainDataError, read_yaml
from equi_core.motion.arm_models import UR5, ArmModel, ArmModelError, arm_model
from equi_core.strict_fields import FieldError, read_fields

NODES = (
    "rtde_driver",
    "depth_fusion",
    "policy",
    "evaluator",
    "camera",
    "simulated_scene",
    "equi_calibrate",
)
"""Nodes that a cell file may configure; `camera` is every simulated camera."""
_SHARED = "cell"
_KEY = "ros__parameters"
_RENAMED = {
    "robot": "rtde_driver (robot_ip: cell)",
    "safety": "rtde_driver",
    "cameras": "cell",
    "perception": "depth_fusion",
    "simulation": "camera",
    "calibration": "equi_calibrate",
    "evaluation": "evaluator",
}
"""Sections of cell files before they were parameter files, and where their values belong now."""


_MOVED = {("rtde_driver", "link.tcp_from_flange_m"): "cell.geometry.tcp_from_flange_m"}
"""Parameters of a node that every node shares now; ROS would ignore the old name silently."""


class CellFileError(ValueError):
    """A cell file that is missing or malformed; says what and where."""


@dataclass(frozen=True)
class CellCamera:
    """What several nodes know of a camera."""

    topic: str
    """Its point clouds."""
    serial: str
    """Serial number on the device's label; `any`: not checked; empty: perception refuses."""
    position_m: tuple[float, float, float]
    """Optical centre in base_link by tape measure [m]; the simulated camera stands there."""
    target_m: tuple[float, float, float]
    """A point in base_link that the camera looks at [m]; its image is upright."""


@dataclass(frozen=True)
class _SharedBlock:
    name: str
    simulated: bool
    robot_ip: str
    cameras: tuple[str, ...]


@dataclass(frozen=True)
class CellFile:
    """One cell: the shared settings, and the parameters of each node."""

    path: Path
    name: str
    simulated: bool
    robot_ip: str
    """Address of the UR controller."""
    cameras: Mapping[str, CellCamera]
    """By name, in the order of the file."""
    geometry: CellGeometry
    """Task frame, table, mounting of the gripper, TCP."""
    blocks: Mapping[str, Mapping[str, Any]]
    """Nested parameters by node."""

    @property
    def camera_names(self) -> tuple[str, ...]:
        """Names of the cameras, in the order of the file."""
        return tuple(self.cameras)

    @property
    def robot_model(self) -> str:
        """Name of the arm that the driver expects; the only place that reads it from the file."""
        return str(_dotted(self.block("rtde_driver")).get("link.robot_model", UR5.name))

    @property
    def arm(self) -> ArmModel:
        """The arm of that name.

        Raises:
            CellFileError: there is none.
        """
        try:
            return arm_model(self.robot_model)
        except ArmModelError as error:
            raise CellFileError(f"{self.path}: rtde_driver.link.robot_model: {error}") from error

    def block(self, node: str) -> dict[str, Any]:
        """Nested parameters of one node alone; empty if the file has none."""
        if node not in NODES:
            raise CellFileError(f"no node '{node}' in a cell; known: {', '.join(NODES)}")
        return dict(self.blocks.get(node, {}))

    def parameters(self, node: str, **own: Any) -> dict[str, Any]:
        """Parameters of a node by dotted name: shared, then the node's block, then `own`."""
        shared: dict[str, Any] = {
            "cell": self.name,
            "simulated": self.simulated,
            "robot_ip": self.robot_ip,
            "robot_model": self.robot_model,
            "cameras": list(self.cameras),
            "geometry": dataclasses.asdict(self.geometry),
        }
        for name, camera in self.cameras.items():
            shared[name] = {"topic": camera.topic, "serial": camera.serial}
        return {**_dotted(shared), **_dotted(self.block(node)), **own}

    @classmethod
    def load(cls, path: Path) -> CellFile:
        """Read a cell file.

        Raises:
            CellFileError: says what is wrong, and in which block.
        """
        blocks = _read_blocks(path)
        if _SHARED not in blocks:
            raise CellFileError(f"{path}: the block '{_SHARED}: {_KEY}:' is missing")
        data = dict(blocks.pop(_SHARED))
        try:
            names = data.get("cameras")
            names = names if isinstance(names, list) else []
            if any(not isinstance(name, str) for name in names) or len(set(names)) != len(names):
                raise FieldError(f"{_SHARED}.cameras", "must be different names")
            cameras = {
                str(name): read_fields(CellCamera, data.pop(name, None), f"{_SHARED}.{name}")
                for name in names
            }
            geometry = read_fields(
                CellGeometry,
                {**dataclasses.asdict(CellGeometry()), **_mapping(data.pop("geometry", {}))},
                f"{_SHARED}.geometry",
                refused_by=GeometryRangeError,
            )
            shared = read_fields(_SharedBlock, data, _SHARED)
        except FieldError as error:
            raise CellFileError(f"{path}: {error}") from error
        if not shared.name or not cameras:
            raise CellFileError(f"{path}: '{_SHARED}' must have a name and at least one camera")
        _refuse_moved(path, blocks)
        flat = {node: _dotted(block) for node, block in blocks.items()}
        for problem in loosened_too_far(flat, simulated=shared.simulated):
            raise CellFileError(f"{path}: {problem}; correct the file")
        return cls(path, shared.name, shared.simulated, shared.robot_ip, cameras, geometry, blocks)


def _read_blocks(path: Path) -> dict[str, Mapping[str, Any]]:
    """The parameters of every block, with the frame checked."""
    if not path.is_file():
        near = sorted(other.stem for other in path.parent.glob("*.yaml"))
        known = f" (there are: {', '.join(near)})" if near else ""
        raise CellFileError(f"no cell file {path}{known}")
    try:
        data = read_yaml(path)
    except PlainDataError as error:
        raise CellFileError(f"{path} {error}") from error
    if not isinstance(data, dict):
        raise CellFileError(f"{path} must hold blocks '<node>: {_KEY}:'")
    if isinstance(data.get(_SHARED), str) or _RENAMED.keys() & data.keys():
        moved = ", ".join(f"{old} -> {new}" for old, new in _RENAMED.items() if old in data)
        raise CellFileError(
            f"{path} has the format before cell files were ROS parameter files; write each section "
            f"as '<node>: {_KEY}:' and name, simulated, robot_ip and cameras under '{_SHARED}: "
            f"{_KEY}:' as in launch/cells/sim.yaml (sections to move: {moved or 'none'})"
        )
    blocks: dict[str, Mapping[str, Any]] = {}
    for key, value in data.items():
        if key != _SHARED and key not in NODES:
            raise CellFileError(
                f"{path}: block '{key}' is unknown; known: {', '.join((_SHARED, *NODES))}"
            )
        parameters = value.get(_KEY) if isinstance(value, dict) and len(value) == 1 else None
        if not isinstance(parameters, dict):
            raise CellFileError(f"{path}: block '{key}' must hold '{_KEY}:' with named values")
        blocks[key] = parameters
    return blocks


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FieldError(f"{_SHARED}.geometry", f"is {value!r}; it must hold named values")
    return value


def _refuse_moved(path: Path, blocks: Mapping[str, Mapping[str, Any]]) -> None:
    for (node, name), now in _MOVED.items():
        if name in _dotted(blocks.get(node, {})):
            raise CellFileError(f"{path}: '{node}: {name}' has moved to '{now}'")


def _dotted(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested parameters by dotted name, as ROS names them."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _dotted(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
