# SPDX-License-Identifier: MIT
"""Specification of a cell's geometry: one task frame, one table, one TCP; nonsense is refused."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest
import yaml

from equi_core.cell_file import CellFile, CellFileError
from equi_core.cell_geometry import CellGeometry, GeometryRangeError
from equi_core.geometry import top_down_pose, yaw_of

SHIFTED = CellGeometry(
    task_x_m=0.1, task_y_m=-0.05, task_yaw_rad=0.4, table_z_m=-0.12, tool_yaw_rad=math.pi / 2
)


def test_by_default_the_task_frame_is_base_link_and_poses_pass_unchanged():
    pose = np.random.default_rng(0).normal(size=(4, 4))
    vector = np.arange(6.0)
    geometry = CellGeometry()
    assert geometry.to_task(pose) is pose
    assert geometry.to_base_link(pose) is pose
    assert geometry.rotate_to_task(vector) is vector
    assert geometry.frame_id == "base_link"
    assert geometry.tcp_offset == [0.0, 0.0, 0.169, 0.0, 0.0, 0.0]


def test_a_point_on_the_table_has_height_zero_in_the_task_frame():
    corner = np.eye(4)
    corner[:3, 3] = (0.1, -0.05, -0.12)  # where the file says the task frame is, in base_link
    np.testing.assert_allclose(SHIFTED.to_task(corner)[:3, 3], 0.0, atol=1e-15)
    assert SHIFTED.frame_id == "task"


def test_a_pose_goes_to_base_link_and_back():
    pose = top_down_pose([0.5, 0.1, 0.2], 0.3)
    there = SHIFTED.to_base_link(pose)
    # By hand: turned by 0.4 rad about the vertical, then shifted.
    x = 0.1 + 0.5 * math.cos(0.4) - 0.1 * math.sin(0.4)
    y = -0.05 + 0.5 * math.sin(0.4) + 0.1 * math.cos(0.4)
    np.testing.assert_allclose(there[:3, 3], (x, y, 0.08), atol=1e-12)
    assert yaw_of(there) == pytest.approx(0.7)
    np.testing.assert_allclose(SHIFTED.to_task(there), pose, atol=1e-12)


def test_speeds_and_forces_turn_with_the_frame():
    east = np.array([math.cos(0.4), math.sin(0.4), 0.5, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(
        SHIFTED.rotate_to_task(east), (1.0, 0.0, 0.5, 0.0, 0.0, 1.0), atol=1e-12
    )


def test_a_gripper_mounted_a_quarter_turn_off_is_in_the_tcp_of_the_controller():
    assert SHIFTED.tcp_offset == [0.0, 0.0, 0.169, 0.0, 0.0, math.pi / 2]
    np.testing.assert_allclose(SHIFTED.flange_from_tcp[:3, 0], (0.0, 1.0, 0.0), atol=1e-15)


def test_a_geometry_travels_to_another_process():
    np.testing.assert_array_equal(SHIFTED.base_link_from_task, SHIFTED.base_link_from_task)
    assert pickle.loads(pickle.dumps(SHIFTED)) == SHIFTED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("table_z_m", -120.0),  # millimetres
        ("tool_yaw_rad", 90.0),  # degrees
        ("task_yaw_rad", 180.0),
        ("task_x_m", math.nan),
        ("task_y_m", math.inf),
        ("tcp_from_flange_m", 0.0),
        ("tcp_from_flange_m", 169.0),
        ("table_z_m", True),
    ],
)
def test_a_value_that_no_cell_can_have_is_refused_by_name(field, value):
    with pytest.raises(GeometryRangeError, match=f"geometry.{field}.*between.*mind the unit"):
        CellGeometry(**{field: value})


def cell_file(folder: Path, geometry: object, **driver: object) -> Path:
    camera = {"topic": "a", "serial": "1", "position_m": [0, 1, 1], "target_m": [0, 0, 0]}
    shared = {"name": "a", "simulated": True, "robot_ip": "127.0.0.2", "cameras": ["cam"]}
    content = {
        "cell": {"ros__parameters": {**shared, "cam": camera, "geometry": geometry}},
        "rtde_driver": {"ros__parameters": driver},
    }
    path = folder / "cell.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_cell_file_states_the_geometry_and_every_node_gets_it(tmp_path):
    cell = CellFile.load(cell_file(tmp_path, {"table_z_m": -0.12, "tool_yaw_rad": 1.5}))
    assert cell.geometry == CellGeometry(table_z_m=-0.12, tool_yaw_rad=1.5)
    for node in ("rtde_driver", "depth_fusion"):
        assert cell.parameters(node)["geometry.table_z_m"] == -0.12


@pytest.mark.parametrize(
    ("geometry", "word"),
    [
        ({"table_z_m": -120}, "geometry.*table_z_m is -120"),
        ({"table_z_m": "low"}, "cell.geometry.table_z_m"),
        ({"table_height_m": 0.1}, "cell.geometry.table_height_m"),
        ([1, 2], "cell.geometry"),
    ],
)
def test_a_wrong_geometry_in_a_cell_file_is_named(tmp_path, geometry, word):
    with pytest.raises(CellFileError, match=word):
        CellFile.load(cell_file(tmp_path, geometry))


def test_the_tcp_stated_where_it_used_to_stand_is_refused_not_ignored(tmp_path):
    path = cell_file(tmp_path, {}, **{"link.tcp_from_flange_m": 0.155})
    with pytest.raises(CellFileError, match=r"cell\.geometry\.tcp_from_flange_m"):
        CellFile.load(path)
    path = cell_file(tmp_path, {}, link={"tcp_from_flange_m": 0.155})
    with pytest.raises(CellFileError, match=r"cell\.geometry\.tcp_from_flange_m"):
        CellFile.load(path)
