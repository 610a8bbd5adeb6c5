# SPDX-License-Identifier: MIT
"""Specification of equi_core.geometry: transforms, yaw, and the UR controller's frames."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equi_core import geometry as geo

angles = st.floats(-20.0, 20.0)
coordinates = st.floats(-2.0, 2.0)
positions = st.tuples(coordinates, coordinates, coordinates)
# Shorter than pi, where a rotation has exactly one rotation vector.
rotvecs = st.tuples(*[st.floats(-1.8, 1.8)] * 3)


@given(angles)
def test_wrapping_keeps_the_direction_and_stays_in_range(angle):
    wrapped = geo.wrap_angle_rad(angle)
    assert -math.pi <= wrapped < math.pi
    assert math.cos(wrapped) == pytest.approx(math.cos(angle), abs=1e-9)
    assert math.sin(wrapped) == pytest.approx(math.sin(angle), abs=1e-9)


@given(angles)
def test_half_turn_wrapping_keeps_the_gripper_axis(angle):
    wrapped = geo.wrap_half_turn_rad(angle)
    assert -math.pi / 2 <= wrapped < math.pi / 2
    assert math.cos(2 * wrapped) == pytest.approx(math.cos(2 * angle), abs=1e-9)


@given(positions, rotvecs)
def test_a_transform_times_its_inverse_is_the_identity(position, rotvec):
    pose = geo.pose_matrix(position, geo.rotvec_to_matrix(rotvec))
    np.testing.assert_allclose(pose @ geo.invert(pose), np.eye(4), atol=1e-12)


@given(rotvecs)
def test_rotation_vectors_survive_the_way_through_matrices(rotvec):
    back = geo.matrix_to_rotvec(geo.rotvec_to_matrix(rotvec))
    np.testing.assert_allclose(back, rotvec, atol=1e-9)


@given(rotvecs)
def test_quaternions_survive_the_way_through_matrices(rotvec):
    matrix = geo.rotvec_to_matrix(rotvec)
    quaternion = geo.quaternion_xyzw(matrix)
    assert quaternion[3] >= 0
    np.testing.assert_allclose(geo.quaternion_xyzw_to_matrix(quaternion), matrix, atol=1e-12)


@given(positions, angles)
def test_a_top_down_pose_points_down_and_remembers_its_yaw(position, yaw):
    base_from_tcp = geo.top_down_pose(position, yaw)
    np.testing.assert_allclose(base_from_tcp[:3, 2], [0, 0, -1], atol=1e-12)
    np.testing.assert_allclose(base_from_tcp[:3, 3], position)
    assert geo.tilt_of(base_from_tcp) == pytest.approx(0, abs=1e-12)
    assert abs(geo.wrap_angle_rad(geo.yaw_of(base_from_tcp) - yaw)) < 1e-9


def test_a_gripper_at_yaw_zero_opens_along_base_x_and_turns_counter_clockwise():
    np.testing.assert_allclose(geo.top_down_pose((0, 0, 0), 0.0)[:3, 0], [1, 0, 0], atol=1e-15)
    quarter = geo.top_down_pose((0, 0, 0), math.pi / 2)
    np.testing.assert_allclose(quarter[:3, 0], [0, 1, 0], atol=1e-15)


def test_tilt_is_measured_from_straight_down():
    tilted = geo.pose_matrix((0, 0, 0), geo.rotvec_to_matrix((math.pi - 0.2, 0, 0)))
    assert geo.tilt_of(tilted) == pytest.approx(0.2)


def test_the_controllers_base_is_half_a_turn_away_from_base_link():
    point_in_base = np.array([0.4, 0.1, 0.3])
    point_in_base_link = geo.transform_points(geo.base_link_from_base(), point_in_base[None])[0]
    np.testing.assert_allclose(point_in_base_link, [-0.4, -0.1, 0.3])


def test_a_published_ur5_pose_is_read_in_base_link():
    # Forward kinematics of the UR5 at q = (0, -90, 90, -90, -90, 0) degrees, from its DH table:
    # controller base xyz (-0.4869, -0.10915, 0.431859), rotation vector (2.2214, 2.2214, 0).
    half = math.pi / math.sqrt(2)
    pose = geo.ur_pose_to_matrix([-0.4869, -0.10915, 0.431859, half, half, 0.0])
    np.testing.assert_allclose(pose[:3, 3], [0.4869, 0.10915, 0.431859])
    np.testing.assert_allclose(pose[:3, 2], [0, 0, -1], atol=1e-12)


@given(positions, rotvecs)
def test_ur_poses_survive_the_way_through_matrices(position, rotvec):
    ur_pose = np.array([*position, *rotvec])
    np.testing.assert_allclose(
        geo.matrix_to_ur_pose(geo.ur_pose_to_matrix(ur_pose)), ur_pose, atol=1e-9
    )


def test_functions_work_on_batches_as_on_single_poses():
    rng = np.random.default_rng(0)
    positions_m, yaws = rng.normal(size=(4, 5, 3)), rng.uniform(-3, 3, size=(4, 5))
    batch = geo.top_down_pose(positions_m, yaws)
    single = geo.top_down_pose(positions_m[2, 3], yaws[2, 3])
    np.testing.assert_array_equal(batch[2, 3], single)
    np.testing.assert_allclose(geo.yaw_of(batch), yaws)
    np.testing.assert_allclose(geo.invert(batch)[2, 3], geo.invert(single))


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: geo.pose_matrix([1, 2], np.eye(3)), "position"),
        (lambda: geo.pose_matrix([1, 2, 3], np.eye(2)), "rotation"),
        (lambda: geo.ur_pose_to_matrix([1, 2, 3]), "UR pose"),
        (lambda: geo.invert(np.eye(3)), "pose"),
        (lambda: geo.quaternion_xyzw_to_matrix([0, 0, 0, 0]), "quaternion"),
    ],
)
def test_a_wrong_shape_is_refused_by_name(call, word):
    with pytest.raises(geo.GeometryError, match=word):
        call()
