# SPDX-License-Identifier: MIT
"""Limits in joint space: branch, singular poses, joint margins, model, a wrist that winds up."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "contracts"))
from test_safety_is_total import hostile_command

from equi_core.cell_geometry import CellGeometry
from equi_core.geometry import invert, top_down_pose
from equi_core.motion.arm_models import ARM_MODELS, UR5
from equi_core.motion.joint_limits import (
    JointLimits,
    configuration_problem,
    folded_yaw,
    path_problem,
    unwound_yaw,
)
from equi_core.motion.safety import RobotInput, filter_command
from equi_core.motion.safety_limits import SafetyLimits
from equi_core.motion.ur5_kinematics import HOME_RAD, forward, inverse, inverse_near, straight_path

CELL = CellGeometry()
LIMITS = JointLimits()
BOX = SafetyLimits()


def joints_at(x: float, y: float, z: float, yaw: float = 0.0) -> np.ndarray:
    return inverse_near(top_down_pose((x, y, z), yaw) @ invert(CELL.flange_from_tcp), HOME_RAD)


def test_the_home_branch_may_be_taken_over_everywhere_in_the_workspace() -> None:
    for x in np.linspace(0.3, 0.7, 5):
        for y in np.linspace(-0.2, 0.2, 5):
            for z in (0.01, 0.25):
                pose = top_down_pose((x, y, z), 0.0)
                assert configuration_problem(joints_at(x, y, z), pose, CELL, LIMITS) == ""


def test_of_the_eight_ways_to_reach_a_pose_one_may_be_taken_over() -> None:
    pose = top_down_pose((0.5, 0.0, 0.05), 0.0)
    problems = [
        configuration_problem(joints, pose, CELL, LIMITS)
        for joints in inverse(pose @ invert(CELL.flange_from_tcp))
    ]

    assert len(problems) == 8
    assert problems.count("") == 1
    assert all(text.startswith("wrong_branch") for text in problems if text)


@pytest.mark.parametrize("model", sorted(set(ARM_MODELS) - {"ur5"}))
def test_the_joints_of_another_arm_put_the_tool_elsewhere_and_are_refused(model: str) -> None:
    pose = top_down_pose((0.5, 0.0, 0.2), 0.0)
    other = JointLimits(ARM_MODELS[model])

    problem = configuration_problem(joints_at(0.5, 0.0, 0.2), pose, CELL, other)

    assert problem.startswith("wrong_kinematics")
    assert model in problem


def test_factory_calibration_of_millimetres_is_no_other_arm() -> None:
    pose = top_down_pose((0.5, 0.0, 0.2), 0.0)
    pose[:3, 3] += (0.004, -0.003, 0.005)

    assert configuration_problem(joints_at(0.5, 0.0, 0.2), pose, CELL, LIMITS) == ""


def test_a_wrist_near_the_end_of_its_range_is_refused_and_named() -> None:
    joints = joints_at(0.5, 0.0, 0.2, yaw=-2.6)
    joints[5] += 2 * math.pi * (1 if joints[5] > 0 else -1)
    assert abs(joints[5]) > LIMITS.largest_rad
    pose = forward(joints, UR5) @ CELL.flange_from_tcp

    problem = configuration_problem(joints, pose, CELL, LIMITS)

    assert problem.startswith("wound_joint: wrist_3_joint")


def test_yaw_counts_the_turns_of_the_wrist() -> None:
    joints = joints_at(0.5, 0.0, 0.2, yaw=0.4)
    pose = top_down_pose((0.5, 0.0, 0.2), 0.4)
    wound = joints.copy()
    wound[5] += 2 * math.pi

    assert unwound_yaw(pose, joints, CELL) == pytest.approx(0.4)
    assert unwound_yaw(pose, wound, CELL) == pytest.approx(0.4 - 2 * math.pi)


@pytest.mark.parametrize("home_yaw", [-3.0, -1.2, 0.0, 1.6, 2.8])
def test_a_yaw_far_round_is_reached_half_a_turn_off_so_that_wrist_3_stays_near_its_middle(
    home_yaw: float,
) -> None:
    """Without folding, wrist 3 ends 4.6 rad from its zero at a yaw of 3 rad."""
    joints = joints_at(0.4, 0.1, 0.2, yaw=0.3)
    yaw = unwound_yaw(forward(joints, UR5) @ CELL.flange_from_tcp, joints, CELL)

    target = folded_yaw(joints, yaw, [0.5, 0.0, 0.2, home_yaw], CELL, LIMITS)

    assert math.sin(target - home_yaw) == pytest.approx(0.0, abs=1e-9)
    wrist = joints[5] - (target - yaw) + (joints_at(0.5, 0.0, 0.2)[0] - joints[0])
    assert abs(wrist) < math.pi / 2 + 0.5


@pytest.mark.parametrize("turns", [-1.0, -0.5, 0.0, 0.5, 1.0])
def test_home_is_reached_with_wrist_3_near_its_middle_whatever_turn_it_stands_at(
    turns: float,
) -> None:
    joints = joints_at(0.4, 0.1, 0.2, yaw=0.3)
    joints[5] += 2 * math.pi * turns
    pose = forward(joints, UR5) @ CELL.flange_from_tcp
    yaw = unwound_yaw(pose, joints, CELL)
    home = [0.5, 0.0, 0.2, 0.0]

    target = folded_yaw(joints, yaw, home, CELL, LIMITS)

    # A gripper of two fingers is the same after half a turn.
    assert math.sin(target) == pytest.approx(0.0, abs=1e-9)
    wrist = joints[5] - (target - yaw) + (joints_at(0.5, 0.0, 0.2)[0] - joints[0])
    assert abs(wrist) < math.pi / 2 + 0.5
    assert path_problem(joints, [0.4, 0.1, 0.2, yaw], [*home[:3], target], CELL, LIMITS) == ""


@given(
    x=st.floats(0.3, 0.7), y=st.floats(-0.2, 0.2), z=st.floats(0.05, 0.25), yaw=st.floats(-7.0, 7.0)
)
@example(x=0.575, y=0.2, z=0.25, yaw=-4.5)
@settings(deadline=None)
def test_wherever_the_tool_is_sent_folding_leaves_wrist_3_near_its_middle(
    x: float, y: float, z: float, yaw: float
) -> None:
    """Far round, the joints nearest to HOME belong to an arm that reaches backwards."""
    home = forward(np.array(HOME_RAD), UR5) @ CELL.flange_from_tcp
    start = [*home[:3, 3], unwound_yaw(home, HOME_RAD, CELL)]

    target = folded_yaw(HOME_RAD, start[3], [x, y, z, yaw], CELL, LIMITS)

    way = straight_path(
        HOME_RAD, start, [x, y, z, target], np.linspace(0.0, 1.0, 40), CELL.tcp_from_flange_m
    )
    # Of two wrist angles half a turn apart one is within a quarter turn; hysteresis adds 0.25.
    assert abs(way[-1, 5]) <= math.pi / 2 + 0.25 + 1e-6


def hostile_in_joint_space(rng: np.random.Generator) -> None:
    """A sequence of hostile commands; whatever is accepted keeps every joint inside its margin."""
    box = BOX.workspace
    position = rng.uniform(box.lower_m, box.upper_m)
    yaw = float(rng.uniform(-math.pi, math.pi))
    joints = joints_at(position[0], position[1], position[2], yaw)
    pose = np.array([*position, unwound_yaw(top_down_pose(position, yaw), joints, CELL)])
    # Some stand a turn off, near the end of the range.
    if rng.random() < 0.5:
        turn = 2 * math.pi * (1 if joints[5] < 0 else -1)
        joints[5] += turn
        pose[3] -= turn
    if abs(joints[5]) > LIMITS.largest_rad:
        return
    start_yaw, last = float(pose[3]), -1
    for number in range(int(rng.integers(1, 8))):
        command = hostile_command(rng, number)
        robot = RobotInput(pose[:3], pose[3], pose[:3], 0.0, 0.0, last, start_yaw)
        safe = filter_command(command, robot, BOX)
        if not safe.accepted:
            continue
        target = np.array([*(safe.target_position_m or ()), safe.target_yaw_rad or 0.0])
        if path_problem(joints, pose, target, CELL, LIMITS):
            continue
        last = number
        # The controller's own way: small steps along the straight line, nearest joints each time.
        for share in np.linspace(0.0, 1.0, 9):
            between = pose + share * (target - pose)
            reached = inverse_near(
                top_down_pose(between[:3], float(between[3])) @ invert(CELL.flange_from_tcp), joints
            )
            assert np.abs(reached - joints).max() < 0.5, "the arm swings to another branch"
            assert np.abs(reached).max() <= LIMITS.largest_rad + 1e-6
            joints = reached
        pose = target


def test_hostile_sequences_never_bring_a_joint_near_its_end() -> None:
    rng = np.random.default_rng(5)
    for _ in range(400):
        hostile_in_joint_space(rng)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_one_hundred_thousand_hostile_sequences_never_bring_a_joint_near_its_end() -> None:
    rng = np.random.default_rng(6)
    for _ in range(100_000):
        hostile_in_joint_space(rng)
