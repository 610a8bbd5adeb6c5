# SPDX-License-Identifier: MIT
"""The perception node over real ROS: what strangers and damaged messages cannot do to it."""

from __future__ import annotations

import array
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]
PATIENCE_S = 60.0
CAMERAS = ("cam_left", "cam_right")


class Cell:
    """Cameras and driver of the test's own: bare table, arm at home, at rest."""

    def __init__(self, probe: Any, camera_input: str) -> None:
        from equi_interfaces.msg import RobotState
        from sensor_msgs.msg import CameraInfo, Image, PointCloud2

        from equi_cell_sim.camera_model import CameraRig
        from equi_cell_sim.depth_camera import DepthCamera
        from equi_rl.envs import make_env
        from equi_ros import qos

        self.probe, self.node = probe, probe.node
        env = make_env("block_picking")
        env.reset(seed=3)
        shapes = env.world.shapes(with_robot=True)
        self.frames = {
            spec.name: (
                spec,
                DepthCamera(spec, CameraRig().noise, spec.base_from_camera, seed=1).capture(
                    shapes, with_colour=False
                ),
            )
            for spec in CameraRig().cameras
        }
        self.joints, _ = env.world.arm.measured()
        self.tcp_m = env.state().tcp_position_m
        self.yaw_rad = env.state().yaw_rad
        env.close()
        self.camera_input = camera_input
        make = self.node.create_publisher
        self.robot = make(RobotState, "/robot_state", qos.ROBOT_STATE)
        if camera_input == "cloud":
            self.clouds = {
                name: make(PointCloud2, f"/{name}/depth/points", qos.CAMERA) for name in CAMERAS
            }
        else:
            self.depths = {
                name: make(Image, f"/{name}/depth/image_rect_raw", qos.CAMERA) for name in CAMERAS
            }
            self.infos = {
                name: make(CameraInfo, f"/{name}/depth/camera_info", qos.CAMERA) for name in CAMERAS
            }
        self.node.create_timer(0.05, self.send_robot)
        self.node.create_timer(0.2, self.send_cameras)

    def robot_message(self) -> Any:
        from equi_interfaces.msg import DriverState, RobotState

        message = RobotState(state=DriverState(value=DriverState.HOLD))
        message.header.stamp = self.node.get_clock().now().to_msg()
        position = message.tcp_pose.position
        position.x, position.y, position.z = self.tcp_m
        message.tcp_pose.orientation.w = 0.0  # no orientation: the gripper points down
        message.tcp_yaw_rad = self.yaw_rad
        message.joint_positions = [float(angle) for angle in self.joints]
        message.gripper_opening = 1.0
        return message

    def send_robot(self) -> None:
        self.robot.publish(self.robot_message())

    def cloud_message(self, name: str) -> Any:
        from sensor_msgs.msg import PointCloud2, PointField

        from equi_calibration.synthetic.depth_camera import cloud_of

        spec, frame = self.frames[name]
        points = cloud_of(spec, frame)
        message = PointCloud2(height=1, width=len(points), point_step=16, row_step=16 * len(points))
        message.header.frame_id = spec.optical_frame
        message.fields = [
            PointField(name=axis, offset=4 * index, datatype=PointField.FLOAT32, count=1)
            for index, axis in enumerate("xyz")
        ]
        message.data = array.array("B", points.tobytes())
        return message

    def send_cameras(self) -> None:
        from sensor_msgs.msg import CameraInfo, Image

        stamp = self.node.get_clock().now().to_msg()
        for name in CAMERAS:
            spec, frame = self.frames[name]
            if self.camera_input == "cloud":
                message = self.cloud_message(name)
                message.header.stamp = stamp
                self.clouds[name].publish(message)
                continue
            height, width = frame.depth_units.shape
            info = CameraInfo(height=height, width=width)
            cx, cy = spec.centre_px
            info.k = [spec.focal_px, 0.0, cx, 0.0, spec.focal_px, cy, 0.0, 0.0, 1.0]
            image = Image(height=height, width=width, encoding="16UC1", step=2 * width)
            image.data = array.array("B", frame.depth_units.tobytes())
            for message in (info, image):
                message.header.frame_id = spec.optical_frame
                message.header.stamp = stamp
            self.infos[name].publish(info)
            self.depths[name].publish(image)

    def observation(self, wanted: Any = lambda message: True) -> Any:
        from equi_interfaces.msg import Observation

        from equi_ros import qos

        return self.probe.wait_for_message(
            Observation, "/observation", wanted, PATIENCE_S, qos.OBSERVATION
        )

    def status(self, word: str) -> Any:
        from equi_interfaces.msg import PerceptionStatus

        from equi_ros import qos

        return self.probe.wait_for_message(
            PerceptionStatus,
            "/perception_status",
            lambda message: any(word in reason for reason in message.reasons),
            PATIENCE_S,
            qos.LATCHED,
        )


@pytest.fixture
def start(ros_probe: Any, processes: Any, repository_root: Path, ros_domain_id: int) -> Any:
    def started(camera_input: str = "cloud", task: str = "block_picking") -> tuple[Cell, Any]:
        parameters = {
            "model": repository_root / "models" / task,
            "calibration": repository_root / "calibration/results/sim",
            "cell": "sim",
            "publishers.robot_state": "test_probe",
            "max_cloud_age_s": 30.0,
            "max_skew_s": 10.0,
            "max_robot_age_s": 10.0,
        }
        for name in CAMERAS:
            parameters[f"{name}.serial"] = f"simulated-{name}"
            parameters[f"{name}.input"] = camera_input
        words = [word for name, value in parameters.items() for word in ("-p", f"{name}:={value}")]
        node = processes.start(
            [sys.executable, "-m", "equi_perception.depth_fusion_node", "--ros-args", *words],
            {"ROS_DOMAIN_ID": str(ros_domain_id)},
        )
        cell = Cell(ros_probe, camera_input)
        assert ros_probe.change_state("/depth_fusion", "configure", PATIENCE_S), node.output
        assert ros_probe.change_state("/depth_fusion", "activate", PATIENCE_S)
        return cell, node

    return started


def test_depth_images_make_the_same_observation_as_clouds(start: Any) -> None:
    """The clouds of this cell are made from the same depth images, so every bit must agree."""
    from equi_calibration.synthetic.depth_camera import cloud_of
    from equi_core.contract import PolicyContract
    from equi_core.observation.builder import ObservationBuilder, RobotPose

    cell, node = start("depth")
    seen = cell.observation()
    builder = ObservationBuilder(
        PolicyContract(task="block_picking").image,
        {name: spec.base_from_camera for name, (spec, _) in cell.frames.items()},
    )
    robot = RobotPose(tuple(cell.joints), cell.tcp_m, cell.yaw_rad, 1.0, False)
    clouds = {name: cloud_of(spec, frame) for name, (spec, frame) in cell.frames.items()}
    expected = builder.build(clouds, robot).image
    image = np.array(seen.image, dtype=np.float32).reshape(expected.shape)
    # The calibration file is of measured cameras: they stand where the rig says to a few mm.
    assert np.median(np.abs(image[0] - expected[0])) < 0.005
    assert node.is_running


def test_nonsense_is_dropped_and_perception_goes_on(start: Any) -> None:
    cell, node = start()
    first = cell.observation()

    not_a_number = cell.robot_message()
    not_a_number.tcp_pose.position.x = float("nan")
    far_joints = cell.robot_message()
    far_joints.joint_positions = [1e300] * 6
    far_future = cell.robot_message()
    far_future.header.stamp.sec = 2**31 - 1
    late_cloud = cell.cloud_message("cam_left")
    late_cloud.header.stamp.sec = 2**31 - 1
    for _ in range(5):
        for message in (not_a_number, far_joints, far_future):
            cell.robot.publish(message)
        cell.clouds["cam_left"].publish(late_cloud)
    cell.observation(lambda message: message.sequence > first.sequence + 2)
    assert node.is_running


def test_a_second_publisher_of_the_robots_state_is_named_and_nothing_is_observed(
    start: Any,
) -> None:
    import rclpy
    from equi_interfaces.msg import RobotState

    from equi_ros import qos

    cell, node = start()
    before = cell.observation()
    stranger = rclpy.create_node("stranger", context=cell.node.context)
    stranger.create_publisher(RobotState, "/robot_state", qos.ROBOT_STATE)
    status = cell.status("foreign_publisher: second_publisher")
    assert "/stranger" in " ".join(status.reasons)
    stranger.destroy_node()
    cell.observation(lambda message: message.sequence > before.sequence + 3)
    assert node.is_running


def test_pushing_is_not_reset_without_a_goal_and_its_pad_is_drawn_with_one(start: Any) -> None:
    from equi_interfaces.srv import ResetEpisode

    cell, _ = start(task="block_pushing")
    reset = "/depth_fusion/reset_episode"
    answer = cell.probe.call(ResetEpisode, reset, ResetEpisode.Request(episode_id="e"), PATIENCE_S)
    assert not answer.accepted
    assert "block_pushing has a goal" in answer.message

    without = cell.observation()
    request = ResetEpisode.Request(episode_id="e", has_goal=True)
    request.goal_position.x, request.goal_position.y = cell.tcp_m[0], cell.tcp_m[1] + 0.12
    assert cell.probe.call(ResetEpisode, reset, request, PATIENCE_S).accepted
    in_episode = cell.robot_message

    def running() -> Any:
        message = in_episode()
        message.episode_id = "e"
        return message

    cell.robot_message = running  # type: ignore[method-assign]
    with_goal = cell.observation(lambda message: message.has_goal)
    pixels = [np.array(m.image, dtype=np.float32)[: 84 * 84] for m in (without, with_goal)]
    deeper = pixels[1] - pixels[0]
    # 90 mm of pad in pixels of 400 / 84 mm: 19 x 19; it is drawn 20 mm deeper than the table.
    assert 300 < np.count_nonzero(np.isclose(deeper, 0.02, atol=1e-4)) < 420
