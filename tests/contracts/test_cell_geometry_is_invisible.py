# SPDX-License-Identifier: MIT
"""A policy cannot tell where its cell stands: observations and steps are those of the task frame.

One cell has the task frame in base_link. The other has its table 12 cm lower, the task frame
shifted and turned, and the gripper mounted a quarter turn off.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from equi_control.driver.steps import Outcome
from equi_core.cell_geometry import CellGeometry
from equi_core.contract import ImageSpec
from equi_core.geometry import invert, pose_matrix, top_down_pose, transform_points
from equi_core.motion.ur5_kinematics import HOME_RAD, inverse_near
from equi_core.observation.builder import FusedObservation, ObservationBuilder, RobotPose
from equi_core.observation.image import ObservationError
from equi_rl.sim.raycast import ShapeTable, cast_pinhole
from equi_rl.sim.robot_model import robot_model
from equi_system_tests.faults.rig import Rig
from ur_emulator.launching import EmulatorProcess

HERE = CellGeometry()
ELSEWHERE = CellGeometry(
    task_x_m=0.08, task_y_m=-0.06, task_yaw_rad=0.35, table_z_m=-0.12, tool_yaw_rad=math.pi / 2
)
TCP_M, YAW_RAD, OPENING = (0.48, 0.03, 0.16), 0.4, 0.6
BLOCK_M, BLOCK_HALF_M = (0.5, 0.1), 0.025
EYES_M = {"left": (0.60, 0.72, 0.62), "right": (0.60, -0.72, 0.62)}


def posture(geometry: CellGeometry) -> np.ndarray:
    """Joints (6,) that bring the TCP to its pose in the task frame, solved in base_link."""
    base_link_from_tcp = geometry.base_link_from_task @ top_down_pose(TCP_M, YAW_RAD)
    return inverse_near(base_link_from_tcp @ invert(geometry.flange_from_tcp), HOME_RAD)


def robot_points(geometry: CellGeometry, eye_task_m: tuple[float, float, float]) -> np.ndarray:
    """What a camera sees of the simulated arm (N, 3), in the task frame."""
    joints = posture(geometry)
    joints[5] += geometry.tool_yaw_rad  # turns the model's gripper as its mounting does
    half_m = OPENING * 0.0425
    table: ShapeTable = robot_model().posed_shapes([*joints, half_m, half_m])
    base_from_camera = geometry.base_link_from_task @ camera_pose(eye_task_m)
    depth = np.empty((240, 320))
    index, normal = np.empty(depth.shape, dtype=np.int64), np.zeros((*depth.shape, 3))
    cast_pinhole(
        *(table.kind, table.size_m, table.rotation, table.position_m),
        *(base_from_camera, (190.0, 190.0, 159.5, 119.5), 0.05, depth, index, normal),
    )
    v, u = np.nonzero(index >= 0)
    d = depth[v, u]
    points = np.column_stack([(u - 159.5) / 190 * d, (v - 119.5) / 190 * d, d])
    return transform_points(camera_pose(eye_task_m), points)


def camera_pose(eye_m: tuple[float, float, float]) -> np.ndarray:
    """task_from_camera (4, 4) of an upright camera that looks at the table."""
    z = np.subtract((0.5, 0.0, 0.05), eye_m)
    z /= np.linalg.norm(z)
    x = np.cross(z, (0.0, 0.0, 1.0))
    x /= np.linalg.norm(x)
    return pose_matrix(eye_m, np.column_stack([x, np.cross(z, x), z]))


def table_and_block() -> np.ndarray:
    """Points (N, 3) of table and block in the task frame."""
    x, y = np.meshgrid(np.arange(0.1, 0.9, 0.003), np.arange(-0.4, 0.4, 0.003))
    on_block = (np.abs(x - BLOCK_M[0]) < BLOCK_HALF_M) & (np.abs(y - BLOCK_M[1]) < BLOCK_HALF_M)
    return np.column_stack([x.ravel(), y.ravel(), np.where(on_block, 0.05, 0.0).ravel()])


def observe(geometry: CellGeometry, assumed: CellGeometry | None = None) -> FusedObservation:
    """The observation in a cell, through a builder that assumes a geometry."""
    cameras = {name: camera_pose(eye) for name, eye in EYES_M.items()}
    clouds = {
        name: transform_points(
            invert(pose), np.concatenate([table_and_block(), robot_points(geometry, EYES_M[name])])
        ).astype(np.float32)
        for name, pose in cameras.items()
    }
    builder = ObservationBuilder(
        ImageSpec(),
        {name: geometry.base_link_from_task @ pose for name, pose in cameras.items()},
        geometry=assumed or geometry,
    )
    pose = RobotPose(tuple(posture(geometry)), TCP_M, YAW_RAD, OPENING, False)
    return builder.build(clouds, pose)


def test_both_cells_give_the_same_observation() -> None:
    here, elsewhere = observe(HERE), observe(ELSEWHERE)
    assert min(elsewhere.points_on_robot) > 500  # the arm was in view, and is taken out
    wrong = np.abs(here.height_m - elsewhere.height_m) > 1e-4
    assert wrong.mean() < 0.002  # a point on the border of two pixels may round either way
    np.testing.assert_allclose(here.image[:, ~wrong], elsewhere.image[:, ~wrong], atol=1e-4)
    # Not by being empty: the block is seen where it stands.
    assert np.isclose(here.height_m, 0.05, atol=1e-3).sum() > 30


def test_a_cell_whose_geometry_is_not_told_shows_something_else() -> None:
    try:
        untold = observe(ELSEWHERE, assumed=HERE)
    except ObservationError:
        return
    assert (np.abs(untold.height_m - observe(HERE).height_m) > 0.01).mean() > 0.2


@pytest.mark.parametrize("field", ["task_x_m", "task_yaw_rad", "table_z_m"])
def test_each_part_of_the_geometry_matters(field: str) -> None:
    """Forgetting one alone changes the observation; the tool's yaw is in the measured TCP."""
    values = {name: getattr(ELSEWHERE, name) for name in ELSEWHERE.__dataclass_fields__}
    assumed = CellGeometry(**{**values, field: 0.0})
    try:
        partly = observe(ELSEWHERE, assumed=assumed)
    except ObservationError:
        return
    here = observe(ELSEWHERE)
    missed = np.abs(partly.height_m - here.height_m) > 2e-3
    assert missed.sum() > 20


class ArmOverTheTable(EmulatorProcess):
    """A robot whose arm a person has led down to the low table."""

    def __enter__(self) -> EmulatorProcess:
        super().__enter__()
        self.api.request("freedrive_move", dxyz_m=[0.0, 0.0, -0.15])
        return self


STEPS = [((0.03, -0.02, -0.04), 0.2), ((-0.01, 0.04, 0.01), -0.3), ((0.0, 0.0, -0.05), 0.0)]


def drive(geometry: CellGeometry, *, down: bool) -> tuple[np.ndarray, np.ndarray, list[Outcome]]:
    """Steps from home; returns the TCP in the task frame and in base_link after each."""
    rig = Rig.patient(link={"geometry": geometry})
    if down:
        rig.emulator = ArmOverTheTable()
    in_task, in_base_link, outcomes = [], [], []
    with rig:
        rig.take_over()
        for step_m, yaw_rad in [((0.0, 0.0, 0.0), 0.0), *STEPS, *[((0.0, 0.0, -0.05), 0.0)] * 3]:
            (report,) = rig.submit(step_m, yaw_rad) + rig.finish_step()
            rig.wait_for_standstill()
            rig.driver.poll()
            state = rig.servo_state
            in_task.append([*state.position_m, state.commanded[3]])
            x, y, z, *_ = rig.emulator.api.status()["actual_tcp"]
            in_base_link.append([-x, -y, z])  # base_link is the controller's base, half turned
            outcomes.append(report.outcome)
    return np.array(in_task), np.array(in_base_link), outcomes


def test_the_driver_makes_the_same_steps_in_both_cells_and_stops_above_either_table() -> None:
    here, base_here, outcomes_here = drive(HERE, down=False)
    elsewhere, base_elsewhere, outcomes_elsewhere = drive(ELSEWHERE, down=True)

    np.testing.assert_allclose(elsewhere[:, :3], here[:, :3], atol=1e-3)
    # The gripper is the same after half a turn, and wrist 3 goes where it has room.
    half_turns = (elsewhere[:, 3] - here[:, 3]) / math.pi
    np.testing.assert_allclose(half_turns, round(half_turns[0]), atol=1e-3)
    assert outcomes_elsewhere == outcomes_here
    # The controller's own word, by the definition of the frames.
    moved = base_here[:, :3]
    cos, sin = math.cos(ELSEWHERE.task_yaw_rad), math.sin(ELSEWHERE.task_yaw_rad)
    expected = np.column_stack(
        [
            0.08 + cos * moved[:, 0] - sin * moved[:, 1],
            -0.06 + sin * moved[:, 0] + cos * moved[:, 1],
            moved[:, 2] - 0.12,
        ]
    )
    np.testing.assert_allclose(base_elsewhere, expected, atol=1e-3)
    assert base_elsewhere[-1, 2] == pytest.approx(-0.12 + 0.01, abs=1e-3)  # lowest allowed TCP
