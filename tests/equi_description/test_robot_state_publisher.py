# SPDX-License-Identifier: MIT
"""The description's node over real DDS: what it publishes is what the kinematics say."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
import rclpy
from equi_description.motion_marker_node import MotionMarkerNode
from equi_description.print_urdf import main as print_urdf
from equi_description.robot_state_publisher_node import RobotStatePublisherNode
from equi_interfaces.msg import DeltaCommand, RobotState
from families import wait_until
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from ros_domains import reserved_domain
from scipy.spatial.transform import Rotation
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from equi_core.motion import ur5_kinematics
from equi_core.motion.arm_models import ARM_MODELS
from equi_core.robot_description.urdf import FINGER_JOINT, robot_description

LATCHED = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Listener:
    """A node that keeps everything it hears, and spins those under test."""

    def __init__(self) -> None:
        self.node = rclpy.create_node("listener", namespace="/cell_a")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.heard: dict[str, list] = {}

    def hear(self, topic: str, kind, qos) -> list:
        messages = self.heard.setdefault(topic, [])
        self.node.create_subscription(kind, topic, messages.append, qos)
        return messages

    def until(self, condition, what: str) -> None:
        def spun() -> bool:
            self.executor.spin_once(timeout_sec=0.02)
            return bool(condition())

        wait_until(spun, 30.0, what)


@pytest.fixture
def listener(monkeypatch):
    with reserved_domain() as domain_id:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(domain_id))
        arguments = ["--ros-args", "-r", "__ns:=/cell_a", "-p", "frame_prefix:=a/"]
        text = robot_description(ARM_MODELS["ur5e"])
        rclpy.init(args=[*arguments, "-p", f"robot_description:={json.dumps(text)}"])
        try:
            yield Listener()
        finally:
            rclpy.shutdown()


def poses_of(messages) -> dict[str, tuple[str, np.ndarray]]:
    """Child frame -> (parent frame, parent_from_child)."""
    found = {}
    for message in messages:
        for item in message.transforms:
            pose = np.eye(4)
            t, r = item.transform.translation, item.transform.rotation
            pose[:3, 3] = (t.x, t.y, t.z)
            pose[:3, :3] = Rotation.from_quat([r.x, r.y, r.z, r.w]).as_matrix()
            found[item.child_frame_id] = (item.header.frame_id, pose)
    return found


@pytest.mark.ros
def test_description_and_transforms_lead_from_base_to_tcp_in_a_namespace(listener):
    node = RobotStatePublisherNode()
    listener.executor.add_node(node)
    # Late: the description and the fixed frames are latched.
    descriptions = listener.hear("robot_description", String, LATCHED)
    static = listener.hear("tf_static", TFMessage, LATCHED)
    moving = listener.hear("tf", TFMessage, 10)
    joints = listener.node.create_publisher(JointState, "joint_states", 10)
    listener.until(lambda: descriptions and static, "description and fixed frames")
    assert descriptions[0].data == robot_description(ARM_MODELS["ur5e"])

    joints_rad = [0.3, -1.2, 1.4, -1.8, -1.5, 0.4]
    message = JointState(
        name=[*ur5_kinematics.JOINT_NAMES, FINGER_JOINT], position=[*joints_rad, 0.02]
    )

    sent = []

    def heard() -> bool:
        message.header.stamp = listener.node.get_clock().now().to_msg()
        sent.append(message.header.stamp)
        joints.publish(message)
        return bool(moving)

    listener.until(heard, "transforms of the joints")
    poses = poses_of([*static, moving[-1]])
    pose, frame = np.eye(4), "a/tool0"
    while frame != "a/base_link":
        frame, parent_from_child = poses[frame]
        pose = parent_from_child @ pose
    expected = ur5_kinematics.forward(joints_rad, ARM_MODELS["ur5e"])
    np.testing.assert_allclose(pose, expected, atol=1e-9)
    gap = poses["a/left_finger"][1][0, 3] - poses["a/right_finger"][1][0, 3]
    assert gap == pytest.approx(0.04)
    assert moving[-1].transforms[0].header.stamp in sent


@pytest.mark.ros
def test_the_next_step_is_drawn_from_the_tcp_to_its_target(listener):
    node = MotionMarkerNode()
    listener.executor.add_node(node)
    markers = listener.hear("motion_marker", MarkerArray, LATCHED)
    robots = listener.node.create_publisher(RobotState, "robot_state", qos_profile_sensor_data)
    commands = listener.node.create_publisher(DeltaCommand, "delta_command", 1)
    robot = RobotState()
    robot.header.frame_id = "a/task"
    robot.tcp_pose.position.x, robot.tcp_pose.position.z = 0.5, 0.2
    command = DeltaCommand(gripper_closedness=0.0)
    command.translation.x, command.translation.z = 0.05, -0.03

    def drawn() -> bool:
        robots.publish(robot)
        time.sleep(0.01)
        listener.executor.spin_once(timeout_sec=0.02)
        commands.publish(command)
        return bool(markers)

    listener.until(drawn, "markers")
    arrow, left, right = markers[-1].markers
    assert arrow.header.frame_id == "a/task"
    assert (arrow.points[0].x, arrow.points[0].z) == (0.5, 0.2)
    assert (arrow.points[1].x, arrow.points[1].z) == pytest.approx((0.55, 0.17))
    # Pads of the open gripper: 85 mm apart on their inner sides, 10 mm thick.
    assert left.pose.position.x - right.pose.position.x == pytest.approx(0.095)


def test_the_urdf_of_every_model_can_be_printed(capsys):
    assert print_urdf(["--model", "ur10e"]) == 0
    assert capsys.readouterr().out == robot_description(ARM_MODELS["ur10e"])
