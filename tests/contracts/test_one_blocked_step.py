# SPDX-License-Identifier: MIT
"""Law: an arm whose step was blocked stays at the same pose in training and on the robot.

The world drives into something rigid. The robot's stream gets the same step and the same measured
pose, and must come to rest where the world's arm was told to stay.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from equi_control.rtde.config import LinkConfig
from equi_control.rtde.robot_reading import Reading
from equi_control.servo.config import ServoConfig
from equi_control.servo.streamer import Streamer
from equi_core.cell_geometry import CellGeometry
from equi_core.geometry import top_down_pose
from equi_core.motion.blocked_step import BlockedStep, blocked_step
from equi_core.motion.ur5_kinematics import HOME_RAD, inverse_near
from equi_rl.sim import world as world_module
from equi_rl.sim.physics_config import PhysicsConfig
from equi_rl.sim.scene import ObjectKind, Scene, SceneObject
from equi_rl.sim.stiff_arm import StiffArm
from equi_rl.sim.world import World

PERIOD_S = 0.008


def immovable_block(x_m: float, yaw_rad: float) -> SceneObject:
    size_m = (0.05, 0.05, 0.05)
    return SceneObject(
        ObjectKind.BLOCK, (x_m, 0.0, 0.025), yaw_rad, False, size_m=size_m, friction=0.6
    )


def streamer_at(pose: np.ndarray) -> Streamer:
    base_link_from_tcp = top_down_pose(pose[:3], float(pose[3]))
    reading = Reading(
        base_link_from_tcp=base_link_from_tcp,
        base_link_from_target_tcp=base_link_from_tcp,
        twist=np.zeros(6),
        wrench=np.zeros(6),
        joints_rad=inverse_near(
            base_link_from_tcp @ np.linalg.inv(CellGeometry().flange_from_tcp), HOME_RAD
        ),
        joint_speeds_rad_s=np.zeros(6),
        controller_time_s=1.0,
        age_s=0.0,
        connected=True,
        program_state=2,
        robot_mode=7,
        safety_mode=1,
        safety_bits=1,
    )
    return Streamer(reading, ServoConfig(LinkConfig("127.0.0.2")), PERIOD_S)


@pytest.mark.parametrize("stiff_arm", [None, StiffArm()])
@pytest.mark.parametrize("block_yaw_rad", [0.0, 0.6])
@pytest.mark.parametrize("step_m", [(0.05, 0.0, 0.0), (0.04, 0.03, 0.0)])
def test_a_blocked_step_ends_at_the_same_pose_in_the_world_and_on_the_robot(
    monkeypatch: pytest.MonkeyPatch,
    block_yaw_rad: float,
    step_m: tuple[float, float, float],
    stiff_arm: StiffArm | None,
) -> None:
    asked: list[tuple[Any, ...]] = []

    def noted(*arguments: Any) -> BlockedStep:
        asked.append(arguments)
        return blocked_step(*arguments)

    monkeypatch.setattr(world_module, "blocked_step", noted)
    world = World(PhysicsConfig(stiff_arm=stiff_arm))
    try:
        world.reset(
            Scene(
                objects=(immovable_block(0.575, block_yaw_rad),),
                tcp_position_m=(0.5, 0.0, 0.03),
                yaw_rad=math.pi / 2,
                opening=0.0,
            )
        )
        position_m, yaw_rad = world.commanded_pose()
        target = [*(np.array(position_m) + step_m), yaw_rad]
        assert not world.move_tcp(target[:3], yaw_rad), "the block is in the way"
        held_m, held_yaw_rad = world.commanded_pose()
    finally:
        world.close()

    # Asked again while the arm still presses.
    start, end, measured_m, measured_yaw_rad, back_off_m = asked[-1]
    robot = streamer_at(start)
    robot.set_target(end)
    measured = top_down_pose(measured_m, measured_yaw_rad)
    robot.restart_at(measured)
    robot.yield_to_contact(measured, back_off_m)
    for _ in range(1000):
        if robot.finished:
            break
        robot.advance()
    np.testing.assert_allclose(robot.commanded[:3], held_m, atol=1e-9)
    assert math.remainder(robot.commanded[3] - held_yaw_rad, 2 * math.pi) == pytest.approx(
        0.0, abs=1e-9
    )


def test_the_held_point_is_a_millimetre_before_what_was_reached() -> None:
    step = blocked_step([0.5, 0.0, 0.1, 0.3], [0.55, 0.0, 0.1, 0.3], [0.52, 0.001, 0.098], 0.31)
    np.testing.assert_allclose(step.pose, [0.519, 0.0, 0.1, 0.3], atol=1e-12)
    assert step.fraction == pytest.approx(0.38)
    assert not step.leaning


def test_an_arm_that_is_pressed_at_its_start_may_go_back_behind_it_by_five_millimetres() -> None:
    step = blocked_step([0.5, 0.0, 0.1, 0.0], [0.55, 0.0, 0.1, 0.0], [0.48, 0.0, 0.1], 0.0)
    assert step.pose[0] == pytest.approx(0.495)


def test_an_arm_that_cannot_rise_yields_sideways() -> None:
    step = blocked_step([0.5, 0.0, 0.05, 0.0], [0.5, 0.0, 0.1, 0.0], [0.503, 0.0, 0.07], 0.0)
    assert step.leaning
    np.testing.assert_allclose(step.pose, [0.503, 0.0, 0.069, 0.0], atol=1e-12)


def test_a_blocked_rotation_is_held_where_it_got_to() -> None:
    step = blocked_step([0.5, 0.0, 0.1, 0.0], [0.5, 0.0, 0.1, 0.8], [0.5, 0.0, 0.1], 0.2)
    assert step.pose[3] == pytest.approx(0.2)
    still = blocked_step([0.5, 0.0, 0.1, 0.4], [0.5, 0.0, 0.1, 0.4], [0.5, 0.0, 0.1], 0.2)
    assert still.pose[3] == pytest.approx(0.4)
