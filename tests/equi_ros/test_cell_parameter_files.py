# SPDX-License-Identifier: MIT
"""Law: a cell file is a ROS parameter file, and every parameter in it is one that its node has."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from equi_cell_sim.camera_model import CameraSpec, Miscalibration, NoiseSpec, Timing
from equi_control.parameters import read_config
from equi_core.cell_file import CellFile
from equi_core.observation.builder import FusionConfig
from equi_perception.freshness import FreshnessLimits
from equi_policy.episode import EpisodeLimits
from equi_policy.session import SessionLimits

CELLS = sorted((Path(__file__).resolve().parents[2] / "launch" / "cells").glob("*.yaml"))


def fields(kind: Any, prefix: str = "") -> set[str]:
    return {prefix + spec.name for spec in dataclasses.fields(kind)}


def driver_parameters() -> set[str]:
    names = set()

    def declare(name: str, default: Any, description: str) -> Any:
        names.add(name)
        return "127.0.0.2" if name == "robot_ip" else default

    read_config(declare)
    return names


PARAMETERS = {
    "rtde_driver": driver_parameters(),
    "depth_fusion": fields(FreshnessLimits) | fields(FusionConfig) | {"remove_outliers"},
    "policy": fields(SessionLimits)
    | fields(EpisodeLimits)
    | {"scene_reset_service", "success_service"},
    "camera": fields(Timing)
    | fields(NoiseSpec, "noise.")
    | fields(Miscalibration, "miscalibration.")
    | fields(CameraSpec),
}


@pytest.mark.parametrize("path", CELLS, ids=lambda path: path.stem)
def test_every_parameter_of_a_shipped_cell_is_known_to_its_node(path: Path) -> None:
    cell = CellFile.load(path)
    for node in set(cell.blocks) & set(PARAMETERS):
        assert set(cell.block(node)) <= PARAMETERS[node], node


@pytest.mark.ros
@pytest.mark.parametrize("path", CELLS, ids=lambda path: path.stem)
def test_rclpy_reads_a_cell_file_as_it_is(path: Path, ros_domain_id: int) -> None:
    import rclpy
    from rclpy.context import Context

    cell = CellFile.load(path)
    context = Context()
    words = ["--ros-args", "--params-file", str(path)]
    rclpy.init(context=context, args=words, domain_id=ros_domain_id)
    try:
        for name in cell.blocks:
            node = rclpy.create_node(
                name, context=context, automatically_declare_parameters_from_overrides=True
            )
            for key, value in flat(cell.block(name)).items():
                read = node.get_parameter(key).value
                assert (list(read) if isinstance(value, list) else read) == value, key
            node.destroy_node()
    finally:
        rclpy.try_shutdown(context=context)


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested parameters by their dotted names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= (
            flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
        )
    return found
