# SPDX-License-Identifier: MIT
"""Specification of cell files: ROS parameter files with one shared block; mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from equi_core.calibration import CellCalibration
from equi_core.cell_file import CellFile, CellFileError

ROOT = Path(__file__).resolve().parents[2]
CELLS = ROOT / "launch" / "cells"
CAMERA = {"topic": "a/points", "serial": "1", "position_m": [0, 1, 1], "target_m": [0, 0, 0]}
SHARED = {"name": "a", "simulated": True, "robot_ip": "127.0.0.2", "cameras": ["cam"]}


def blocks(shared: dict | None = None, **nodes: object) -> dict:
    """Content of a cell file."""
    shared = {**SHARED, "cam": CAMERA} if shared is None else shared
    return {"cell": {"ros__parameters": shared}, **nodes}


def load(content: object, folder: Path) -> CellFile:
    path = folder / "x.yaml"
    path.write_text(yaml.safe_dump(content))
    return CellFile.load(path)


def test_the_shipped_cells_load():
    for name, simulated in (("sim", True), ("lab", False)):
        cell = CellFile.load(CELLS / f"{name}.yaml")
        assert (cell.name, cell.simulated) == (name, simulated)
        assert cell.camera_names == ("cam_left", "cam_right")


def test_the_simulated_cell_agrees_with_its_calibration():
    cell = CellFile.load(CELLS / "sim.yaml")
    calibration = CellCalibration.load(ROOT / "calibration" / "results" / "sim")
    serials = {name: camera.serial for name, camera in cell.cameras.items()}
    calibration.require_usable(cell.camera_names, cell=cell.name, serials=serials)


def test_a_node_gets_the_shared_block_then_its_own_and_then_what_the_caller_sets(tmp_path):
    cell = load(
        blocks(depth_fusion={"ros__parameters": {"limits": {"age_s": 0.5}, "skew_s": 0.1}}),
        tmp_path,
    )
    assert cell.parameters("depth_fusion", robot_ip="10.0.0.1", model="m") == {
        "cell": "a",
        "robot_ip": "10.0.0.1",
        "robot_model": "ur5",
        "cameras": ["cam"],
        "simulated": True,
        "cam.topic": "a/points",
        "cam.serial": "1",
        "geometry.task_x_m": 0.0,
        "geometry.task_y_m": 0.0,
        "geometry.task_yaw_rad": 0.0,
        "geometry.table_z_m": 0.0,
        "geometry.tool_yaw_rad": 0.0,
        "geometry.tcp_from_flange_m": 0.169,
        "limits.age_s": 0.5,
        "skew_s": 0.1,
        "model": "m",
    }


def test_every_node_learns_the_arm_from_the_drivers_block(tmp_path):
    driver = {"ros__parameters": {"link": {"robot_model": "ur10e"}}}
    cell = load(blocks(rtde_driver=driver), tmp_path)
    assert cell.parameters("depth_fusion")["robot_model"] == "ur10e"
    assert cell.arm.links_m[1] == -0.6127


def test_an_unknown_arm_is_refused_by_name(tmp_path):
    driver = {"ros__parameters": {"link.robot_model": "ur7"}}
    with pytest.raises(CellFileError, match=r"link\.robot_model: robot model is 'ur7'"):
        load(blocks(rtde_driver=driver), tmp_path).arm  # noqa: B018


@pytest.mark.parametrize("name", ["sim", "lab"])
def test_no_value_of_a_shipped_cell_stands_twice(name):
    """Names within the shared block and a node's block differ, so neither can contradict it."""
    cell = CellFile.load(CELLS / f"{name}.yaml")
    shared = set(cell.parameters("evaluator"))
    for node in cell.blocks:
        assert not shared & set(cell.block(node)) - {"cameras"}
    cameras = cell.block("equi_calibrate")["cameras"]
    assert not {"position_m", "target_m", "topic", "serial"} & set(cameras["cam_left"])


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ({}, "'cell: ros__parameters:' is missing"),
        (blocks({**SHARED, "cam": CAMERA, "simulated": "yes"}), "cell.simulated"),
        (blocks({**SHARED, "cam": CAMERA, "colour": 1}), "cell.colour"),
        (blocks({**SHARED}), "cell.cam"),
        (blocks({**SHARED, "cam": {**CAMERA, "position_m": [1]}}), "cell.cam.position_m"),
        (blocks({**SHARED, "cameras": []}), "at least one camera"),
        (blocks(percepton={"ros__parameters": {}}), "'percepton' is unknown"),
        (blocks(depth_fusion={"skew_s": 0.1}), "'depth_fusion' must hold 'ros__parameters:'"),
        ([1], "must hold blocks"),
    ],
)
def test_a_mistake_is_named(tmp_path, content, word):
    with pytest.raises(CellFileError, match=word):
        load(content, tmp_path)


def test_a_cell_file_of_the_old_format_says_what_to_change(tmp_path):
    old = {
        "cell": "lab",
        "simulated": False,
        "robot": {"robot_ip": "192.168.1.10"},
        "cameras": {"cam_left": {"topic": "a", "serial": "1"}},
        "perception": {"max_cloud_age_s": 0.3},
    }
    with pytest.raises(CellFileError, match="ROS parameter files") as caught:
        load(old, tmp_path)
    assert "perception -> depth_fusion" in str(caught.value)
    assert "robot -> rtde_driver (robot_ip: cell)" in str(caught.value)
    assert "launch/cells/sim.yaml" in str(caught.value)


def test_text_that_is_not_yaml_is_refused(tmp_path):
    (tmp_path / "x.yaml").write_text("[1")
    with pytest.raises(CellFileError, match="YAML"):
        CellFile.load(tmp_path / "x.yaml")


def test_a_missing_file_lists_its_neighbours(tmp_path):
    (tmp_path / "lab.yaml").write_text("")
    with pytest.raises(CellFileError, match="lab"):
        CellFile.load(tmp_path / "labb.yaml")
