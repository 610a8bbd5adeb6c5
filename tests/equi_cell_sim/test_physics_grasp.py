# SPDX-License-Identifier: MIT
"""Specification of contact in the emulated cell: what is held stays held, what slips is slow."""

from __future__ import annotations

import numpy as np
import pytest

from equi_cell_sim.physics_arm import PhysicsArm
from equi_core.geometry import top_down_pose
from equi_core.motion.ur5_kinematics import inverse_near
from equi_rl.sim.robot_model import TCP_FROM_TOOL0_M

PERIOD_S = 0.008
BLOCK_XY_M = (0.55, 0.05)


def joints_at(arm, height_m, yaw_rad):
    base_from_tool0 = top_down_pose(np.array([*BLOCK_XY_M, height_m]), yaw_rad)
    base_from_tool0[:3, 3] -= base_from_tool0[:3, 2] * TCP_FROM_TOOL0_M
    return inverse_near(base_from_tool0, arm.joints_rad)


def move(arm, height_m, yaw_rad, duration_s):
    """Along a smooth line in joint space, as the controller would stream it."""
    start, end = arm.joints_rad.copy(), joints_at(arm, height_m, yaw_rad)
    target = start
    for share in np.linspace(0.0, 1.0, round(duration_s / PERIOD_S)):
        smooth = 10 * share**3 - 15 * share**4 + 6 * share**5
        before, target = target, start + smooth * (end - start)
        arm.follow(target, (target - before) / PERIOD_S, PERIOD_S)


def wait(arm, duration_s):
    joints = arm.joints_rad.copy()
    for _ in range(round(duration_s / PERIOD_S)):
        arm.follow(joints, np.zeros(6), PERIOD_S)


@pytest.mark.parametrize("block_yaw_rad", [0.0, 0.25, -0.4])
@pytest.mark.parametrize("force_n", [20.0, 37.0])
def test_a_lifted_block_stays_in_the_fingers_through_motions_and_new_commands(
    block_yaw_rad, force_n
):
    # Given a block between the fingers, not quite parallel to them
    arm = PhysicsArm(125)
    block = {
        "kind": "block",
        "position_m": [*BLOCK_XY_M, 0.025],
        "yaw_rad": block_yaw_rad,
        "movable": True,
        "size_m": [0.05, 0.05, 0.05],
        "mass_kg": 0.1,
    }
    arm.reset_scene({"objects": [block]})
    arm.gripper.command(0.085, 0.15, force_n)
    move(arm, 0.10, np.pi / 2, 1.0)
    move(arm, 0.025, np.pi / 2, 0.5)
    # when it is grasped, lifted in steps, and the gripper is told again to close at every step
    arm.gripper.command(0.0, 0.15, force_n)
    wait(arm, 0.7)
    for height_m in (0.07, 0.12, 0.17):
        move(arm, height_m, np.pi / 2, 0.5)
        arm.gripper.command(0.001, 0.15, force_n)
        wait(arm, 0.4)
    # then it has come along.
    assert arm.scene()["objects"][0]["position_m"][2] > 0.15
    arm.close()


@pytest.mark.parametrize("rate_hz", [125, 500])
def test_an_arm_that_was_held_back_returns_to_its_path_slowly_and_arrives(rate_hz):
    # Given an arm two centimetres behind its path, as after slipping off an edge
    arm = PhysicsArm(rate_hz)
    target = arm.joints_rad + np.array([0.04, 0.0, 0.0, 0.0, 0.0, 0.0])
    # when the path stands still
    speeds = []
    for _ in range(round(0.5 * rate_hz)):
        arm.follow(target, np.zeros(6), 1.0 / rate_hz)
        speeds.append(float(np.abs(arm.speeds_rad_s).max()))
    # then it comes back at less than 0.5 m/s at a reach of 0.85 m, and all the way
    assert max(speeds) < 0.5 / 0.85
    assert max(speeds) > 0.1
    assert arm.joints_rad == pytest.approx(target, abs=1e-3)


def test_a_moving_path_is_followed_as_closely_as_its_speed_demands():
    arm = PhysicsArm(125)
    start = arm.joints_rad.copy()
    speed_rad_s = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    for cycle in range(1, 100):
        ramp = min(cycle / 25, 1.0)
        start = start + ramp * speed_rad_s * PERIOD_S
        arm.follow(start, ramp * speed_rad_s, PERIOD_S)
    assert abs(start[0] - arm.joints_rad[0]) < 0.012, "1.5 periods at 1 rad/s"
