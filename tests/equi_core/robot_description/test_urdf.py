# SPDX-License-Identifier: MIT
"""The URDF says what the kinematics say: for every arm, every joint vector and every mounting."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest

from equi_core.cell_geometry import CellGeometry
from equi_core.motion import ur5_kinematics
from equi_core.motion.arm_models import ARM_MODELS, UR5
from equi_core.robot_description.joint_tree import DescriptionError, JointTree
from equi_core.robot_description.urdf import (
    FINGER_JOINT,
    MAX_OPENING_M,
    finger_position_m,
    robot_description,
)

RNG = np.random.default_rng(0)


def named(joints_rad) -> dict[str, float]:
    return dict(zip(ur5_kinematics.JOINT_NAMES, joints_rad, strict=True))


@pytest.mark.parametrize("model", sorted(ARM_MODELS))
def test_the_flange_is_where_the_closed_form_kinematics_put_it(model):
    arm = ARM_MODELS[model]
    tree = JointTree(robot_description(arm))
    for joints_rad in RNG.uniform(-2 * math.pi, 2 * math.pi, (50, 6)):
        tool0 = tree.frames(named(joints_rad))["tool0"]
        np.testing.assert_allclose(tool0, ur5_kinematics.forward(joints_rad, arm), atol=1e-12)


def test_tcp_gripper_and_task_frame_follow_the_cell(tmp_path):
    geometry = CellGeometry(
        task_x_m=0.4, task_y_m=-0.1, task_yaw_rad=0.5, table_z_m=-0.02,
        tool_yaw_rad=0.3, tcp_from_flange_m=0.2,
    )  # fmt: skip
    frames = JointTree(robot_description(UR5, geometry)).frames(named(ur5_kinematics.HOME_RAD))
    expected = ur5_kinematics.forward(ur5_kinematics.HOME_RAD) @ geometry.flange_from_tcp
    np.testing.assert_allclose(frames["tcp"], expected, atol=1e-12)
    np.testing.assert_allclose(frames["task"], geometry.base_link_from_task, atol=1e-12)
    # The fingers part along the TCP's x axis.
    open_ = JointTree(robot_description(UR5, geometry)).frames(
        {**named(ur5_kinematics.HOME_RAD), FINGER_JOINT: 0.04}
    )
    parted = open_["left_finger"][:3, 3] - open_["right_finger"][:3, 3]
    np.testing.assert_allclose(parted, 0.08 * expected[:3, 0], atol=1e-12)


def test_the_finger_joint_is_half_of_the_gap():
    assert finger_position_m(1.0) == MAX_OPENING_M / 2
    assert finger_position_m(0.0) == finger_position_m(-1.0) == 0.0


def test_pybullet_reads_the_text_and_finds_the_same_flange(tmp_path):
    """An independent reader of URDF."""
    pybullet = pytest.importorskip("pybullet")
    path = tmp_path / "ur5e.urdf"
    path.write_text(robot_description(ARM_MODELS["ur5e"]))
    client = pybullet.connect(pybullet.DIRECT)
    try:
        robot = pybullet.loadURDF(str(path), useFixedBase=True, physicsClientId=client)
        infos = [
            pybullet.getJointInfo(robot, index, client)
            for index in range(pybullet.getNumJoints(robot, client))
        ]
        joints_rad = RNG.uniform(-3, 3, 6)
        values = named(joints_rad)
        for info in infos:
            if info[1].decode() in values:
                pybullet.resetJointState(
                    robot, info[0], values[info[1].decode()], physicsClientId=client
                )
        [tool] = [info[0] for info in infos if info[12].decode() == "tool0"]
        state = pybullet.getLinkState(
            robot, tool, computeForwardKinematics=True, physicsClientId=client
        )
        expected = ur5_kinematics.forward(joints_rad, ARM_MODELS["ur5e"])
        np.testing.assert_allclose(state[4], expected[:3, 3], atol=1e-6)
        rotation = np.array(pybullet.getMatrixFromQuaternion(state[5])).reshape(3, 3)
        np.testing.assert_allclose(rotation, expected[:3, :3], atol=1e-6)
    finally:
        pybullet.disconnect(client)


def test_the_world_and_the_description_are_one_file():
    from equi_rl.sim.robot_model import robot_model

    model = robot_model()
    values = RNG.uniform(-1, 1, 6)
    joints = [*values, 0.03, 0.03]
    world = dict(zip(model.link_names, model.frames(joints), strict=True))
    ours = JointTree(robot_description()).frames({**named(values), FINGER_JOINT: 0.03})
    for link in world:
        np.testing.assert_allclose(ours[link], world[link], atol=1e-9, err_msg=link)


def test_a_longer_arm_has_longer_shapes():
    def upper_arm_m(arm) -> float:
        robot = ElementTree.fromstring(robot_description(arm))
        [link] = [item for item in robot.findall("link") if item.get("name") == "upper_arm_link"]
        return max(float(item.get("length")) for item in link.iter("cylinder"))

    assert upper_arm_m(UR5) == pytest.approx(0.425)
    assert upper_arm_m(ARM_MODELS["ur10"]) == pytest.approx(0.612)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("not xml", "not XML"),
        ("<model/>", "begins with <model>"),
        ("<robot><link name='a'/><link name='b'/></robot>", "do not form a tree: roots a, b"),
        (
            "<robot><link name='a'/><link name='b'/><joint name='j' type='floating'>"
            "<parent link='a'/><child link='b'/></joint></robot>",
            "joint j is 'floating'",
        ),
        (
            "<robot><link name='a'/><link name='b'/><joint name='j' type='fixed'>"
            "<parent link='a'/><child link='b'/><origin xyz='0 1'/></joint></robot>",
            "joint j has '0 1'",
        ),
    ],
)
def test_a_description_that_is_none_is_refused_with_the_reason(text, complaint):
    with pytest.raises(DescriptionError, match=complaint):
        JointTree(text)
