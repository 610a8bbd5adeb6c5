# SPDX-License-Identifier: MIT
"""The robot description: physics, ray caster and closed-form kinematics agree about it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from equi_core.contract import ImageSpec, Workspace
from equi_core.geometry import quaternion_xyzw_to_matrix
from equi_core.motion import ur5_kinematics
from equi_rl.sim.bullet import new_client, pybullet
from equi_rl.sim.robot_model import (
    FINGER_THICKNESS_M,
    FINGER_TIP_FROM_TOOL0_M,
    FINGER_WIDTH_M,
    FLANGE_LINK,
    MAX_OPENING_M,
    TCP_FROM_TOOL0_M,
    DescriptionError,
    description_path,
    read_description,
    robot_model,
)


@pytest.fixture(scope="module")
def bullet_robot():
    client = new_client()
    body = client.loadURDF(
        str(description_path()), useFixedBase=True, flags=pybullet.URDF_USE_INERTIA_FROM_FILE
    )
    yield client, body
    client.disconnect()


def random_joints(rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([rng.uniform(-np.pi, np.pi, 6), rng.uniform(0.0, 0.0425, 2)])


def test_the_description_agrees_with_the_closed_form_kinematics():
    model, rng = robot_model(), np.random.default_rng(0)
    flange = model.link_names.index(FLANGE_LINK)
    for _ in range(50):
        joints = random_joints(rng)
        assert_allclose(model.frames(joints)[flange], ur5_kinematics.forward(joints[:6]), atol=1e-9)


def test_pybullet_puts_every_link_where_the_ray_caster_draws_it(bullet_robot):
    client, body = bullet_robot
    model, rng = robot_model(), np.random.default_rng(1)
    joints = random_joints(rng)
    for index, value in enumerate(joints):
        client.resetJointState(body, index, value)
    frames = model.frames(joints)
    for link in range(client.getNumJoints(body)):
        state = client.getLinkState(body, link, computeForwardKinematics=True)
        assert_allclose(frames[link + 1, :3, 3], state[4], atol=1e-6)
        assert_allclose(frames[link + 1, :3, :3], quaternion_xyzw_to_matrix(state[5]), atol=1e-6)


def test_the_moving_arm_weighs_what_universal_robots_publishes(bullet_robot):
    client, body = bullet_robot
    links = client.getNumJoints(body)
    masses = [client.getDynamicsInfo(body, link)[0] for link in range(links)]
    gripper_kg = 0.92
    assert sum(masses) == pytest.approx(17.05 + gripper_kg, abs=0.02)


def test_the_drawn_fingers_are_as_large_as_the_fingers():
    image = ImageSpec()
    assert image.finger_width_m == FINGER_WIDTH_M
    assert image.finger_thickness_m == FINGER_THICKNESS_M
    assert image.max_opening_m == MAX_OPENING_M
    shapes = robot_model().posed_shapes([*ur5_kinematics.HOME_RAD, 0.0425, 0.0425])
    extents = 2 * shapes.size_m
    fingers = np.isclose(extents[:, 0], FINGER_THICKNESS_M) & np.isclose(
        extents[:, 1], FINGER_WIDTH_M
    )
    assert np.count_nonzero(fingers) == 2


def test_the_finger_tips_clear_the_table_at_the_lowest_allowed_tcp():
    tips_below_tcp_m = FINGER_TIP_FROM_TOOL0_M - TCP_FROM_TOOL0_M
    assert Workspace().z_min_m - tips_below_tcp_m == pytest.approx(0.005)


def test_a_description_with_a_mesh_is_refused_by_name(tmp_path):
    path = tmp_path / "odd.urdf"
    path.write_text(
        '<robot name="odd"><material name="m"><color rgba="1 1 1 1"/></material>'
        '<link name="a"><visual><geometry><mesh filename="x"/></geometry>'
        '<material name="m"/></visual></link></robot>'
    )
    with pytest.raises(DescriptionError, match="mesh"):
        read_description(path, body=0)
