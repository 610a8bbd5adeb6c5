# SPDX-License-Identifier: MIT
"""Links and kinematics of each model, factory calibration, contact springs, link clearances."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equi_core.motion import ur5_kinematics
from ur_emulator.mechanics.collisions import LinkCollisions
from ur_emulator.mechanics.contact import Obstacle, ObstacleError, resist, table
from ur_emulator.mechanics.kinematics import HOME_RAD, Kinematics, NoSolutionError
from ur_emulator.mechanics.links import LINKS

EYE = np.eye(4)
TOOL = np.eye(4)
TOOL[2, 3] = 0.155
Q = np.array([0.3, -1.2, 1.5, -1.9, -1.4, 0.7])

# Flange in base for joints 0 and for Q: computed by hand-written DH products outside this project.
FLANGE_M = {
    "ur5": ((-0.81725, -0.19145, -0.005491), (-0.561374, -0.302549, 0.291054)),
    "ur5e": ((-0.8172, -0.2329, 0.0628), (-0.558621, -0.330054, 0.347516)),
}


@pytest.mark.parametrize("model", FLANGE_M)
def test_forward_kinematics_match_published_tables(model: str) -> None:
    kinematics = Kinematics(LINKS[model])
    for joints, expected_m in zip((np.zeros(6), Q), FLANGE_M[model], strict=True):
        flange = kinematics.base_from_tcp(joints, EYE)
        assert flange[:3, 3] == pytest.approx(expected_m, abs=1e-6)


@pytest.mark.parametrize("model", LINKS)
def test_an_outstretched_arm_has_the_reach_of_its_lengths(model: str) -> None:
    """At joints 0 the arm lies along -x of base; lengths add up."""
    links = LINKS[model]
    x, y, z = Kinematics(links).base_from_tcp(np.zeros(6), EYE)[:3, 3]
    assert x == pytest.approx(links.a2_m + links.a3_m)
    assert y == pytest.approx(-(links.d4_m + links.d6_m))
    assert z == pytest.approx(links.d1_m - links.d5_m)


def test_the_ur5_agrees_with_the_kinematics_that_drivers_use() -> None:
    rng = np.random.default_rng(0)
    kinematics = Kinematics(LINKS["ur5"])
    half_turn = np.diag([-1.0, -1.0, 1.0, 1.0])
    for joints in rng.uniform(-3.0, 3.0, (50, 6)):
        assert kinematics.base_from_tcp(joints, EYE) == pytest.approx(
            half_turn @ ur5_kinematics.forward(joints), abs=1e-12
        )
        assert kinematics.determinant(joints) == pytest.approx(
            ur5_kinematics.determinant(joints), abs=1e-12
        )


@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize("model", LINKS)
def test_the_inverse_returns_to_the_joints_it_came_from(model: str, seed: int) -> None:
    kinematics = Kinematics(LINKS[model], seed)
    rng = np.random.default_rng(1)
    tried = 0
    for joints in rng.uniform(-2.5, 2.5, (100, 6)):
        if min(abs(math.sin(joints[2])), abs(math.sin(joints[4]))) < 0.3:
            continue
        if kinematics.is_singular(joints):
            continue
        pose = kinematics.base_from_tcp(joints, TOOL)
        tried += 1
        assert kinematics.solve(pose, TOOL, joints) == pytest.approx(joints, abs=1e-6)
    assert tried > 40


def test_the_jacobian_is_the_derivative_of_the_pose() -> None:
    kinematics = Kinematics(LINKS["ur10e"], 3)
    jacobian = kinematics.jacobian(Q, TOOL)
    step = 1e-6
    for joint in range(6):
        moved = Q.copy()
        moved[joint] += step
        before, after = (kinematics.base_from_tcp(joints, TOOL) for joints in (Q, moved))
        assert (after - before)[:3, 3] / step == pytest.approx(jacobian[:3, joint], abs=1e-5)


def test_a_factory_calibration_moves_the_tcp_by_millimetres_and_stays_that_robots_own() -> None:
    nominal = Kinematics(LINKS["ur5"])
    own = Kinematics(LINKS["ur5"], 2)
    rng = np.random.default_rng(2)
    distances_m = [
        float(np.linalg.norm((own.base_from_tcp(q, TOOL) - nominal.base_from_tcp(q, TOOL))[:3, 3]))
        for q in rng.uniform(-3.0, 3.0, (200, 6))
    ]
    assert 0.001 < np.mean(distances_m) < 0.005
    assert max(distances_m) < 0.01
    again = Kinematics(LINKS["ur5"], 2).base_from_tcp(Q, TOOL)
    assert np.array_equal(again, own.base_from_tcp(Q, TOOL))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_pose_that_is_no_number_has_no_solution(bad: float) -> None:
    pose = np.eye(4)
    pose[0, 3] = bad
    with pytest.raises(NoSolutionError, match="not finite"):
        Kinematics(LINKS["ur5"]).solve(pose, EYE, np.array(HOME_RAD))


def test_arm_and_obstacle_share_the_depth_as_springs_in_series() -> None:
    soft = Obstacle((0.0, 0.0, -0.5), (1.0, 1.0, 1.0), stiffness_n_m=25_000.0)
    displacement, force = resist(np.array([0.1, 0.1, -0.01]), (soft,), 25_000.0)
    assert displacement == pytest.approx([0.0, 0.0, 0.005])
    assert force == pytest.approx([0.0, 0.0, 125.0])
    assert not resist(np.array([0.1, 0.1, 0.01]), (soft,), 25_000.0)[1].any()


def test_a_turned_box_pushes_out_through_its_nearest_face() -> None:
    box = Obstacle((0.5, 0.0, 0.1), (0.1, 0.4, 0.2), yaw_rad=math.pi / 2)
    way_out = box.penetration(np.array([0.5, 0.04, 0.1]))
    assert way_out == pytest.approx([0.0, 0.01, 0.0])


def test_a_table_pushes_up_a_tool_that_was_sent_far_below_it() -> None:
    assert table(0.1).penetration(np.array([0.4, 0.2, -0.3])) == pytest.approx([0.0, 0.0, 0.4])


@pytest.mark.parametrize("size", [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (math.nan, 1.0, 1.0)])
def test_an_obstacle_without_extent_is_refused(size: tuple[float, float, float]) -> None:
    with pytest.raises(ObstacleError):
        Obstacle((0.0, 0.0, 0.0), size)


def clearance(
    joints: tuple[float, ...], model: str = "ur5", table_z_m: float = 0.0
) -> tuple[float, str]:
    kinematics = Kinematics(LINKS[model])
    frames = kinematics.link_frames(np.array(joints))
    return LinkCollisions(kinematics, table_z_m).nearest(frames, TOOL)


@pytest.mark.parametrize("model", LINKS)
def test_home_is_free_of_collisions(model: str) -> None:
    assert clearance(HOME_RAD, model)[0] > 0.01


def test_a_branch_with_its_elbow_below_the_table_is_found() -> None:
    """TCP at (0.5, 0, 0.05) m, tool down, elbow down: a solution of the inverse kinematics."""
    gap_m, parts = clearance((-0.224, 0.36, -1.44, 2.65, 1.57, -1.79))
    assert parts == "elbow and table"
    assert gap_m < -0.05


def test_a_folded_arm_meets_itself() -> None:
    gap_m, parts = clearance((0.0, -1.57, 2.9, -1.57, -1.57, 0.0), table_z_m=-2.0)
    assert gap_m < 0.0
    assert "table" not in parts
