# SPDX-License-Identifier: MIT
"""Law: a record of the sensors, played back, gives the observations of then, bit by bit."""

from __future__ import annotations

import array
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from families import wait_until

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]
PATIENCE_S = 60.0
CAMERAS = ("cam_left", "cam_right")
PERIOD_S = 0.25
WANTED = 4


class Cell:
    """Depth cameras and driver of the test's own, writing every message that they send to a bag."""

    def __init__(self, node: Any, writer: Any) -> None:
        from equi_interfaces.msg import RobotState
        from sensor_msgs.msg import CameraInfo, Image

        from equi_cell_sim.camera_model import CameraRig
        from equi_cell_sim.depth_camera import DepthCamera
        from equi_evaluation.bag.metadata import OfferedQos
        from equi_evaluation.bag.ros_topics import type_name_of
        from equi_evaluation.message_definitions import definition_of, type_hash_of
        from equi_rl.envs import make_env
        from equi_ros import qos

        self.node, self.writer, self.sent = node, writer, 0
        env = make_env("block_picking")
        env.reset(seed=3)
        shapes = env.world.shapes(with_robot=True)
        self.joints, _ = env.world.arm.measured()
        self.state = env.state()
        env.close()
        rig = CameraRig()
        # Noise makes every picture another one.
        self.frames = {
            spec.name: [
                (spec, camera.capture(shapes, with_colour=False))
                for camera in [DepthCamera(spec, rig.noise, spec.base_from_camera, seed=1)]
                for _ in range(6)
            ]
            for spec in rig.cameras
        }
        self.publishers = {}
        topics = [("/robot_state", RobotState, qos.ROBOT_STATE, "best_effort")]
        for name in CAMERAS:
            topics.append((f"/{name}/depth/camera_info", CameraInfo, qos.CAMERA, "reliable"))
            topics.append((f"/{name}/depth/image_rect_raw", Image, qos.CAMERA, "reliable"))
        for topic, kind, profile, reliability in topics:
            self.publishers[topic] = node.create_publisher(kind, topic, profile)
            type_name = type_name_of(kind)
            writer.add_topic(
                topic,
                type_name,
                definition_of(type_name),
                type_hash=type_hash_of(type_name),
                qos=[OfferedQos(reliability=reliability)],
            )

    def send(self, topic: str, message: Any) -> None:
        from rclpy.serialization import serialize_message

        data = serialize_message(message)
        self.writer.write(topic, data, time.time_ns())
        self.publishers[topic].publish(data)

    def send_all(self) -> None:
        """A robot state before and after the pictures of both cameras."""
        from equi_interfaces.msg import DriverState, RobotState
        from sensor_msgs.msg import CameraInfo, Image

        stamp = self.node.get_clock().now().to_msg()
        robot = RobotState(state=DriverState(value=DriverState.HOLD))
        robot.header.stamp = stamp
        position = robot.tcp_pose.position
        position.x, position.y, position.z = self.state.tcp_position_m
        robot.tcp_pose.orientation.w = 0.0  # no orientation: the gripper points down
        robot.tcp_yaw_rad = self.state.yaw_rad
        robot.joint_positions = [float(angle) for angle in self.joints]
        robot.gripper_opening = 1.0
        self.send("/robot_state", robot)
        for name in CAMERAS:
            spec, frame = self.frames[name][self.sent % len(self.frames[name])]
            height, width = frame.depth_units.shape
            info = CameraInfo(height=height, width=width)
            cx, cy = spec.centre_px
            info.k = [spec.focal_px, 0.0, cx, 0.0, spec.focal_px, cy, 0.0, 0.0, 1.0]
            image = Image(height=height, width=width, encoding="16UC1", step=2 * width)
            image.data = array.array("B", frame.depth_units.tobytes())
            for message in (info, image):
                message.header.frame_id = spec.optical_frame
                message.header.stamp = stamp
            self.send(f"/{name}/depth/camera_info", info)
            self.send(f"/{name}/depth/image_rect_raw", image)
        self.sent += 1


@pytest.fixture
def perception(ros_probe: Any, processes: Any, repository_root: Path, ros_domain_id: int) -> Any:
    """Start an active perception node that listens to a publisher of the robot's state."""

    def start(publisher: str, *, simulated_time: bool) -> Any:
        parameters = {
            "model": repository_root / "models" / "block_picking",
            "calibration": repository_root / "calibration/results/sim",
            "cell": "sim",
            "publishers.robot_state": publisher,
            "max_cloud_age_s": 30.0,
            "max_skew_s": 10.0,
            "max_robot_age_s": 30.0,
            "use_sim_time": str(simulated_time).lower(),
        }
        for name in CAMERAS:
            parameters |= {f"{name}.serial": f"simulated-{name}", f"{name}.input": "depth"}
        words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        node = processes.start(
            [sys.executable, "-m", "equi_perception.depth_fusion_node", "--ros-args", *words],
            {"ROS_DOMAIN_ID": str(ros_domain_id)},
        )
        assert ros_probe.change_state("/depth_fusion", "configure", PATIENCE_S), node.output
        assert ros_probe.change_state("/depth_fusion", "activate", PATIENCE_S)
        return node

    return start


def test_a_played_record_gives_the_same_observations(
    ros_probe: Any, processes: Any, perception: Any, ros_domain_id: int, tmp_path: Path
) -> None:
    from equi_interfaces.msg import Observation

    from equi_evaluation.bag.writer import BagWriter
    from equi_ros import qos

    seen: list[Any] = []
    ros_probe.node.create_subscription(Observation, "/observation", seen.append, qos.RECORDED)

    live = perception("test_probe", simulated_time=False)
    with BagWriter(tmp_path / "record") as writer:
        cell = Cell(ros_probe.node, writer)

        def enough() -> bool:
            cell.send_all()
            time.sleep(PERIOD_S)  # the camera's rate
            return len(seen) >= WANTED

        wait_until(enough, PATIENCE_S, "live observations")
    then, seen[:] = _by_stamps(seen), []
    live.stop()
    for publisher in cell.publishers.values():
        ros_probe.node.destroy_publisher(publisher)
    wait_until(
        lambda: "/depth_fusion" not in ros_probe.node_names(), PATIENCE_S, "the node is gone"
    )

    perception("rosbag2_player", simulated_time=True)
    player = processes.start(
        [
            *(sys.executable, "-m", "equi_evaluation.bag.play_bag_node"),
            *(str(tmp_path / "record"), "--clock-topics-all", "--delay", "3"),
        ],
        {"ROS_DOMAIN_ID": str(ros_domain_id)},
    )
    wait_until(lambda: not player.is_running, PATIENCE_S, "the end of the record")
    wait_until(lambda: len(seen) >= WANTED - 1, PATIENCE_S, f"observations; {player.output}")
    now = _by_stamps(seen)
    common = sorted(set(then) & set(now))
    assert len(common) >= WANTED - 2, (sorted(then), sorted(now))
    assert all(now[stamps] == then[stamps] for stamps in common)
    assert len({then[stamps] for stamps in common}) == len(common), "the pictures differ"


def _by_stamps(observations: list[Any]) -> dict[tuple[int, ...], bytes]:
    """Bytes of the image, by the stamp of the observation."""
    return {
        (item.header.stamp.sec, item.header.stamp.nanosec): item.image.tobytes()
        for item in observations
    }
