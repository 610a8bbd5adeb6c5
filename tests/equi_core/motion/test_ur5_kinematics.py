# SPDX-License-Identifier: MIT
"""Specification of the UR5's kinematics against its published figures and against itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equi_core import geometry as geo
from equi_core.motion import ur5_kinematics as ur5

angle = st.floats(-math.pi, math.pi)
joint_vectors = st.tuples(angle, angle, angle, angle, angle, angle)


def dh_chain(joints) -> np.ndarray:
    """Forward kinematics by multiplying the published DH table with generic matrices."""
    table = [
        (0.0, 0.089159, math.pi / 2),
        (-0.425, 0.0, 0.0),
        (-0.39225, 0.0, 0.0),
        (0.0, 0.10915, math.pi / 2),
        (0.0, 0.09465, -math.pi / 2),
        (0.0, 0.0823, 0.0),
    ]
    pose = geo.base_link_from_base()
    for q, (a, d, alpha) in zip(joints, table, strict=True):
        pose = (
            pose
            @ geo.pose_matrix([0, 0, d], geo.rotation_about_z(q))
            @ geo.pose_matrix([a, 0, 0], geo.rotvec_to_matrix([alpha, 0, 0]))
        )
    return pose


@given(joint_vectors)
@settings(deadline=None)
def test_forward_is_the_product_of_the_dh_table(joints):
    np.testing.assert_allclose(ur5.forward(joints), dh_chain(joints), atol=1e-12)


def test_forward_meets_the_published_pose():
    # In the controller's base: position (-0.561374, -0.302549, 0.291054) m and rotation vector
    # (2.484903, 1.651745, -0.113723) rad for q = (0.3, -1.2, 1.5, -1.9, -1.4, 0.7).
    pose = geo.matrix_to_ur_pose(ur5.forward([0.3, -1.2, 1.5, -1.9, -1.4, 0.7]))
    expected = [-0.561374, -0.302549, 0.291054, 2.484903, 1.651745, -0.113723]
    np.testing.assert_allclose(pose, expected, atol=2e-6)


@given(joint_vectors)
@settings(deadline=None)
def test_every_inverse_solution_reaches_the_pose(joints):
    pose = ur5.forward(joints)
    for solution in ur5.inverse(pose):
        np.testing.assert_allclose(ur5.forward(solution), pose, atol=1e-6)


@given(joint_vectors)
@settings(deadline=None)
def test_the_nearest_inverse_finds_the_joints_back_away_from_singularities(joints):
    if abs(ur5.determinant(joints)) < 1e-2:
        return
    back = ur5.inverse_near(ur5.forward(joints), joints)
    np.testing.assert_allclose(back, joints, atol=1e-6)


@given(joint_vectors)
@settings(deadline=None)
def test_the_determinant_is_that_of_the_numerical_jacobian(joints):
    step = 1e-6
    columns = []
    for i in range(6):
        ahead, behind = np.array(joints), np.array(joints)
        ahead[i] += step
        behind[i] -= step
        pose_a, pose_b = ur5.forward(ahead), ur5.forward(behind)
        linear = (pose_a[:3, 3] - pose_b[:3, 3]) / (2 * step)
        turn = geo.matrix_to_rotvec(pose_a[:3, :3] @ pose_b[:3, :3].T) / (2 * step)
        columns.append(np.concatenate([linear, turn]))
    numerical = np.linalg.det(np.array(columns).T)
    assert ur5.determinant(joints) == pytest.approx(numerical, abs=1e-6)


def test_a_straight_path_is_straight_and_keeps_the_tool_down():
    start, end = np.array([0.45, -0.1, 0.2, 0.3]), np.array([0.55, 0.15, 0.05, -0.4])
    tool_m = 0.17
    at_start = geo.top_down_pose(np.add(start[:3], [0, 0, tool_m]), start[3])
    joints = ur5.inverse_near(at_start, ur5.HOME_RAD)
    fractions = np.linspace(0, 1, 21)
    path = ur5.straight_path(joints, start, end, fractions, tool_m)
    for fraction, waypoint in zip(fractions, path, strict=True):
        pose = ur5.forward(waypoint)
        expected = start + fraction * (end - start)
        np.testing.assert_allclose(pose[:3, 3] - [0, 0, tool_m], expected[:3], atol=1e-9)
        assert geo.tilt_of(pose) < 1e-9
        assert abs(geo.wrap_angle_rad(geo.yaw_of(pose) - expected[3])) < 1e-9
    assert np.abs(np.diff(path, axis=0)).max() < 0.2


def test_a_pose_beyond_reach_is_refused_with_its_place():
    with pytest.raises(ur5.OutOfReachError, match=r"1\.500"):
        ur5.inverse_near(geo.top_down_pose([1.5, 0, 0.2], 0.0), ur5.HOME_RAD)


def test_a_singular_pose_is_refused():
    straight = (0.0, -math.pi / 2, 0.0, -math.pi / 2, 0.0, 0.0)
    with pytest.raises(ur5.SingularPoseError, match="singular"):
        ur5.inverse_near(ur5.forward(straight), straight)


@pytest.mark.parametrize("joints", [[0] * 5, [math.nan] * 6])
def test_a_joint_vector_of_the_wrong_form_is_refused(joints):
    with pytest.raises(ur5.KinematicsError, match="six"):
        ur5.forward(joints)
