# SPDX-License-Identifier: MIT
"""Specification of the robot's volume: it covers the whole robot and hardly anything else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from equi_core import geometry as geo
from equi_core.contract import ImageSpec
from equi_core.motion.arm_models import ARM_MODELS, UR5
from equi_core.motion.ur5_kinematics import HOME_RAD, forward, link_frames
from equi_core.observation.arm_shapes import ARM_SHAPES
from equi_core.observation.projection import CameraCloud, fuse_clouds
from equi_core.observation.robot_shape import robot_volume
from equi_rl.sim.raycast import cast_pinhole
from equi_rl.sim.robot_model import robot_model
from equi_rl.sim.world import joints_for_pose

IMAGE = ImageSpec(view_m=3.0, size_px=300)
"""A view wide enough for the whole arm."""


def surface_points(joints, opening, eye, target) -> np.ndarray:
    """What a camera sees of the simulated robot alone (N, 3)."""
    half_m = opening * 0.0425
    table = robot_model().posed_shapes([*joints, half_m, half_m])
    z = np.subtract(target, eye)
    z = z / np.linalg.norm(z)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x = x / np.linalg.norm(x)
    pose = geo.pose_matrix(eye, np.column_stack([x, np.cross(z, x), z]))
    depth = np.empty((120, 160))
    index, normal = np.empty(depth.shape, dtype=np.int64), np.zeros((*depth.shape, 3))
    intrinsics = (110.0, 110.0, 79.5, 59.5)
    cast_pinhole(
        table.kind,
        table.size_m,
        table.rotation,
        table.position_m,
        pose,
        intrinsics,
        0.05,
        depth,
        index,
        normal,
    )
    v, u = np.nonzero(index >= 0)
    d = depth[v, u]
    points = np.column_stack([(u - 79.5) / 110 * d, (v - 59.5) / 110 * d, d])
    return geo.transform_points(pose, points)


def count_dropped(points, joints, opening, margin_m=0.006, task_from_tcp=None, arm=UR5) -> int:
    """How many points the fusion takes for the robot's."""
    volume = robot_volume(joints, opening, ImageSpec(), margin_m, None, task_from_tcp, arm)
    fused = fuse_clouds(
        [CameraCloud(points.astype(np.float32), np.eye(4))],
        (0.0, 0.0, 0.5),
        IMAGE,
        robot_capsules_m=volume.capsules,
        robot_boxes_m=volume.boxes,
        height_range_m=(-2.0, 2.0),
    )
    assert fused.points_on_robot[0] + fused.points_in_view[0] == len(points)
    return fused.points_on_robot[0]


@pytest.mark.parametrize(
    ("joints", "opening"),
    [
        (np.array(HOME_RAD), 1.0),
        (joints_for_pose((0.5, 0.0, 0.03), 0.4), 0.3),
        (joints_for_pose((0.35, -0.15, 0.2), -1.2), 0.0),
        (joints_for_pose((0.65, 0.18, 0.1), 1.0), 1.0),
    ],
)
def test_every_visible_point_of_the_robot_is_covered(joints, opening):
    for eye in ((0.6, 0.9, 0.6), (0.6, -0.9, 0.6), (1.3, 0.1, 0.8)):
        points = surface_points(joints, opening, eye, (0.3, 0.0, 0.25))
        assert len(points) > 500
        assert count_dropped(points, joints, opening) == len(points)


def test_what_the_fingers_hold_is_not_taken_for_the_robot():
    joints = joints_for_pose((0.5, 0.0, 0.1), 0.0)
    # A cube of 5 cm between the pads: its middle and most of its top belong to nobody but itself.
    offsets = np.linspace(-0.018, 0.018, 9)
    top = np.array([[0.5 + x, y, 0.125] for x in offsets for y in offsets])
    assert count_dropped(top, joints, 0.05 / 0.085) == 0


def test_the_table_below_the_fingers_is_not_taken_for_the_robot():
    joints = joints_for_pose((0.5, 0.0, 0.05), 0.7)
    rng = np.random.default_rng(1)
    table = np.column_stack([rng.uniform((0.3, -0.2), (0.7, 0.2), (200, 2)), np.zeros(200)])
    assert count_dropped(table, joints, 1.0) == 0


def test_the_volume_stays_close_to_the_arm():
    """A point three centimetres off the gripper's side is free space."""
    joints = joints_for_pose((0.5, 0.0, 0.1), 0.0)
    beside = np.array([[0.5, 0.037 + 0.03, 0.25], [0.5, 0.011 + 0.03, 0.12], [0.6, 0.0, 0.1]])
    assert count_dropped(beside, joints, 1.0) == 0


KNUCKLE_END_M = (0.0745, 0.098)
"""The widest place of an open 2F-85 (149 mm over all, data sheet), and its distance from the flange
(its published models), in the plane of the fingers [m]."""


def gripper_points(task_from_tcp, opening=1.0) -> np.ndarray:
    """Points on the outside of an open 2F-85: palm, knuckles, outer fingers and fingers."""
    along = []
    for side in (-1.0, 1.0):
        along += [(side * 0.0306, 0.055), (side * 0.062, 0.0508), (side * 0.068, 0.098)]
        along += [(side * KNUCKLE_END_M[0], KNUCKLE_END_M[1])]
        along += [(side * (0.0425 + 0.011), z) for z in (0.10, 0.13, 0.16, 0.172)]
        along += [(side * 0.030, 0.03), (side * 0.045, 0.08)]
    points = np.array([(x, y, z) for x, z in along for y in (-0.010, 0.0, 0.010)])
    flange = task_from_tcp @ geo.pose_matrix((0.0, 0.0, -0.169), np.eye(3))
    return geo.transform_points(flange, points)


def test_the_open_gripper_is_covered_to_its_knuckles():
    pose = geo.top_down_pose((0.5, 0.0, 0.1), 0.6)
    joints = joints_for_pose((0.5, 0.0, 0.1), 0.6)
    points = gripper_points(pose)
    assert count_dropped(points, joints, 1.0) == len(points)


@pytest.mark.parametrize("seed", range(20))
def test_an_arm_that_is_5_mm_off_its_nominal_kinematics_is_covered_all_the_same(seed):
    """The joints say one thing, the controller's own kinematics another; the latter is right."""
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    deviation_m = 0.005 * direction / np.linalg.norm(direction)
    nominal_m, yaw = rng.uniform((0.35, -0.15, 0.05), (0.65, 0.15, 0.2)), rng.uniform(-1, 1)
    joints = joints_for_pose(tuple(nominal_m), yaw)
    measured = geo.top_down_pose(nominal_m + deviation_m, yaw)

    gripper = gripper_points(measured)
    above = np.add(nominal_m, (0.0, 0.0, 0.2))
    wrist = surface_points(joints, 1.0, (0.6, 0.9, 0.6), above)
    near = np.linalg.norm(wrist - above, axis=1) < 0.12
    arm = wrist[near] + deviation_m  # wrist and gripper move with the TCP
    points = np.concatenate([gripper, arm])
    assert len(arm) > 100
    assert count_dropped(points, joints, 1.0, task_from_tcp=measured) == len(points)


def test_what_is_held_stays_visible_beside_knuckles_and_deviation():
    pose = geo.top_down_pose((0.5, 0.0, 0.1), 0.0)
    joints = joints_for_pose((0.503, 0.002, 0.097), 0.0)
    offsets = np.linspace(-0.018, 0.018, 9)
    top = np.array([[0.5 + x, y, 0.125] for x in offsets for y in offsets])
    assert count_dropped(top, joints, 0.05 / 0.085, task_from_tcp=pose) == 0


UR5_CAPSULES = np.array(
    [
        [0, 0, 0, 0, 0, 0.129159, 0.084],
        [0, 0, 0.089159, -0.0608771625722, 0.19679931676, 0.089159, 0.067],
        [
            -0.0401464200749,
            0.129782462048,
            0.089159,
            0.106977353537,
            0.175293178405,
            0.485275611536,
            0.061,
        ],
        [
            0.161013223325,
            0.000609901368618,
            0.485275611536,
            0.0897928535196,
            0.230845995248,
            0.485275611536,
            0.062,
        ],
        [
            0.142247690202,
            0.0612737684281,
            0.485275611536,
            0.509508762068,
            0.174880931027,
            0.407347566532,
            0.051,
        ],
        [
            0.524728052711,
            0.125681101837,
            0.407347566532,
            0.464397602521,
            0.320713046092,
            0.407347566532,
            0.052,
        ],
        [
            0.482128814921,
            0.263392856744,
            0.407347566532,
            0.597859716498,
            0.299192619802,
            0.311215584939,
            0.052,
        ],
        [
            0.5920346983,
            0.280590440882,
            0.393799046373,
            0.499360806846,
            0.291767733784,
            0.286393702157,
            0.052,
        ],
    ]
)
"""Of `UR5_JOINTS_RAD` with a margin of 6 mm, before other arms were known here [m]."""
UR5_JOINTS_RAD = (0.3, -1.2, 1.4, -1.1, -1.3, 0.5)


def test_the_shape_of_a_ur5_stays_what_it_was_before_other_arms_were_known():
    volume = robot_volume(UR5_JOINTS_RAD, 0.3, ImageSpec(), 0.006)
    np.testing.assert_allclose(volume.capsules, UR5_CAPSULES, rtol=0, atol=1e-11)


OTHER_ARMS = sorted(set(ARM_MODELS) - {"ur5"})
LINK_POINTS = json.loads((Path(__file__).parent / "link_points.json").read_text())["models"]


def test_every_arm_has_a_shape():
    assert set(ARM_SHAPES) == set(ARM_MODELS)


@pytest.mark.parametrize("name", OTHER_ARMS)
@pytest.mark.parametrize("joints", [HOME_RAD, UR5_JOINTS_RAD, (-2.0, -0.7, -1.9, 0.4, 1.1, 2.0)])
def test_the_links_of_every_other_arm_are_covered(name, joints):
    """Points on the published meshes of the arm, base excluded."""
    arm = ARM_MODELS[name]
    frames = link_frames(joints, arm)
    for link, given in LINK_POINTS[name].items():
        on_link = np.array(given["points_mm"]) / 1000.0
        points = geo.transform_points(frames[given["frame"]], on_link)
        assert count_dropped(points, joints, 1.0, arm=arm) == len(points), link


@pytest.mark.parametrize("name", OTHER_ARMS)
def test_links_do_not_swell_where_an_arm_stands_as_its_own_kinematics_say(name):
    """With a UR5's kinematics the TCP seemed decimetres off, and the links grew by half of it."""
    arm = ARM_MODELS[name]
    tcp = forward(HOME_RAD, arm) @ geo.pose_matrix((0.0, 0.0, 0.169), np.eye(3))
    args = (HOME_RAD, 1.0, ImageSpec(), 0.006, None)
    measured = robot_volume(*args, tcp, arm).capsules
    np.testing.assert_allclose(measured, robot_volume(*args, None, arm).capsules, atol=1e-12)
    swollen = robot_volume(*args, tcp, UR5).capsules
    assert swollen[2, 6] > robot_volume(*args, None, UR5).capsules[2, 6] + 0.02


@pytest.mark.parametrize("name", OTHER_ARMS)
def test_the_space_beside_the_gripper_of_every_other_arm_is_free(name):
    arm = ARM_MODELS[name]
    tcp = forward(HOME_RAD, arm) @ geo.pose_matrix((0.0, 0.0, 0.169), np.eye(3))
    beside = geo.transform_points(tcp, np.array([[0.0, 0.067, -0.05], [0.1, 0.0, 0.0]]))
    assert count_dropped(beside, HOME_RAD, 1.0, task_from_tcp=tcp, arm=arm) == 0
