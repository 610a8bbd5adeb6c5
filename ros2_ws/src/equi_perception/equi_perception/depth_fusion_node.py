"""depth_fusion_node: clouds and robot state in, Observation out; says why when none comes.

    ros2 run equi_perception depth_fusion_node --ros-args \
        -p model:=models/block_picking -p calibration:=calibration/results/sim -p cell:=sim

Refuses to start (exit code 3) with a contract or calibration that must not be used. While it runs
it publishes an observation for every new pair of clouds that is fresh, simultaneous, and taken
after the arm came to rest; anything else is explained on `perception_status`.
"""

from __future__ import annotations

import array
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from equi_interfaces.msg import Observation, PerceptionStatus, RobotState
from equi_interfaces.srv import ResetEpisode
from geometry_msgs.msg import Point
from rclpy.node import Node
from sensor_msgs.msg import Image, PointCloud2

from equi_core.calibration import CellCalibration
from equi_core.contract import PolicyContract
from equi_core.observation.builder import (
    FusedObservation,
    FusionConfig,
    ObservationBuilder,
    RobotPose,
)
from equi_core.observation.image import ObservationError
from equi_perception.cloud_layout import Cloud, CloudLayoutError
from equi_perception.freshness import (
    Cause,
    Finding,
    FreshnessLimits,
    FreshnessMonitor,
    StampedCloud,
    StampedRobot,
    Verdict,
)
from equi_perception.outlier_removal import without_outliers
from equi_perception.perception_report import PerceptionFigures, StatusNews, worth_telling
from equi_perception.preview import preview_rgb
from equi_perception.raw_cloud import RawCloudError, read_cloud
from equi_ros import qos
from equi_ros.run_node import run_node

_TICK_S = 0.02
_DIAGNOSTICS_PERIOD_S = 1.0


class DepthFusionNode(Node):
    """Wires topics to the libraries; holds no knowledge of its own."""

    def __init__(self) -> None:
        super().__init__("depth_fusion")
        self._read_parameters()
        contract = PolicyContract.load(self._model / "contract.json")
        calibration = CellCalibration.load(self._calibration)
        if self._ignore_verdict:
            self.get_logger().warning(
                "calibration verdict, age and cell are NOT checked: ignore_calibration_verdict"
            )
        else:
            calibration.require_usable(self._cameras, cell=self._cell, serials=self._serials)
        self._camera_poses = {name: calibration.camera(name) for name in self._cameras}
        self._frames = {name: camera.optical_frame for name, camera in self._camera_poses.items()}
        self._builder = ObservationBuilder(
            contract.image,
            {name: camera.base_from_raw_points for name, camera in self._camera_poses.items()},
            self._fusion,
        )
        self._builder.warm_up()
        self._contract = contract
        self._monitor = FreshnessMonitor(self._cameras, self._limits)
        self._goals: dict[str, tuple[float, float, float] | None] = {}
        self._sequence = 0
        self._used_stamps: dict[str, int] = {}
        self._news = StatusNews()
        self._figures = PerceptionFigures(self._cameras)
        self._unreadable: dict[str, Finding] = {}
        self._connect()
        self.get_logger().info(
            f"ready: task {contract.task}, cameras {', '.join(self._cameras)}, "
            f"calibration of cell '{calibration.cell}' from {calibration.created.date()}"
        )

    # Wiring ------------------------------------------------------------------------------------

    def _read_parameters(self) -> None:
        def text(name: str, default: str = "") -> str:
            return str(self.declare_parameter(name, default).value)

        def number(name: str, default: float) -> float:
            return float(self.declare_parameter(name, default).value)

        self._model = Path(text("model"))
        self._calibration = Path(text("calibration"))
        self._cell = text("cell", "sim")
        names = self.declare_parameter("cameras", ["cam_left", "cam_right"]).value
        self._cameras = tuple(str(name) for name in names)
        self._topics = {
            name: text(f"{name}.topic", f"{name}/depth/points") for name in self._cameras
        }
        serials = {name: text(f"{name}.serial") for name in self._cameras}
        self._serials = {name: serial for name, serial in serials.items() if serial}
        self._ignore_verdict = bool(
            self.declare_parameter("ignore_calibration_verdict", False).value
        )
        limits = FreshnessLimits()
        self._limits = FreshnessLimits(
            **{name: number(name, default) for name, default in vars(limits).items()}
        )
        fusion = FusionConfig()
        self._fusion = FusionConfig(
            **{
                name: self.declare_parameter(name, default).value
                for name, default in vars(fusion).items()
            }
        )
        self._remove_outliers = bool(self.declare_parameter("remove_outliers", False).value)

    def _connect(self) -> None:
        self._observations = self.create_publisher(Observation, "observation", qos.OBSERVATION)
        self._previews = self.create_publisher(Image, "observation_preview", qos.OBSERVATION)
        self._status = self.create_publisher(PerceptionStatus, "perception_status", qos.LATCHED)
        self._diagnostics = self.create_publisher(DiagnosticArray, "diagnostics", qos.DIAGNOSTICS)
        for name in self._cameras:
            self.create_subscription(
                PointCloud2,
                self._topics[name],
                partial(self._on_cloud, name),
                qos.POINT_CLOUD,
                raw=True,
            )
        self.create_subscription(RobotState, "robot_state", self._on_robot, qos.ROBOT_STATE_HISTORY)
        self.create_service(ResetEpisode, "~/reset_episode", self._on_reset)
        self.create_timer(_TICK_S, self._tick)
        self.create_timer(_DIAGNOSTICS_PERIOD_S, self._publish_diagnostics)
        self._publish_camera_frames()

    # Callbacks ---------------------------------------------------------------------------------

    def _on_cloud(self, camera: str, data: bytes) -> None:
        try:
            cloud = read_cloud(data)
        except RawCloudError as error:
            self._unreadable[camera] = Finding(Cause.CLOUD_UNREADABLE, f"{camera}: {error}")
            return
        expected = self._frames[camera]
        if cloud.frame_id != expected:
            self._unreadable[camera] = Finding(
                Cause.CLOUD_UNREADABLE,
                f"{camera} sends frame '{cloud.frame_id}', but '{expected}' was calibrated; "
                "are two cameras swapped?",
            )
            return
        self._unreadable.pop(camera, None)
        stamped = StampedCloud(cloud.stamp_ns, self._now_ns(), cloud)
        if not self._monitor.add_cloud(camera, stamped):
            self._figures.count_rejected(camera)
        self._tick()

    def _on_robot(self, message: RobotState) -> None:
        self._monitor.add_robot(
            StampedRobot(
                stamp_ns=_nanoseconds(message.header.stamp),
                moving=message.moving,
                episode_id=message.episode_id,
                executed_steps=message.executed_steps,
                state=message,
            )
        )

    def _on_reset(
        self, request: ResetEpisode.Request, response: ResetEpisode.Response
    ) -> ResetEpisode.Response:
        if not request.episode_id:
            response.accepted, response.message = False, "episode_id is empty; give it a name"
            return response
        goal = request.goal_position
        self._goals = {request.episode_id: (goal.x, goal.y, goal.z) if request.has_goal else None}
        response.accepted = True
        return response

    def _tick(self) -> None:
        now_ns = self._now_ns()
        verdict = self._monitor.judge(now_ns)
        findings = [*self._unreadable.values(), *verdict.findings]
        if not findings and verdict.robot is not None and self._is_new(verdict):
            findings = self._observe(verdict, verdict.robot)
        self._publish_status(worth_telling(findings), verdict)

    # Doing -------------------------------------------------------------------------------------

    def _is_new(self, verdict: Verdict) -> bool:
        """Both clouds are newer than those of the last observation."""
        return all(
            cloud.stamp_ns > self._used_stamps.get(name, -1)
            for name, cloud in verdict.clouds.items()
        )

    def _observe(self, verdict: Verdict, robot: StampedRobot) -> list[Finding]:
        began = time.perf_counter()
        self._used_stamps = {name: cloud.stamp_ns for name, cloud in verdict.clouds.items()}
        goal = self._goals.get(robot.episode_id)
        try:
            points = {name: _points(cloud.cloud) for name, cloud in verdict.clouds.items()}
            if self._remove_outliers:
                points = {name: without_outliers(rows) for name, rows in points.items()}
            decoded = time.perf_counter()
            fused = self._builder.build(
                points, _pose(robot.state), None if goal is None else goal[:2]
            )
        except CloudLayoutError as error:
            return [Finding(Cause.CLOUD_UNREADABLE, str(error))]
        except ObservationError as error:
            return [Finding(Cause.CLOUD_EMPTY, str(error))]
        self._observations.publish(self._message(verdict, robot, fused, goal))
        wait_ms = (self._now_ns() - min(c.stamp_ns for c in verdict.clouds.values())) / 1e6
        self._figures.add(
            fused,
            {
                "decode": (decoded - began) * 1e3,
                **fused.stages_ms,
                "publish": (time.perf_counter() - decoded) * 1e3 - sum(fused.stages_ms.values()),
                "exposure_to_observation": wait_ms,
            },
        )
        if self._previews.get_subscription_count():
            self._previews.publish(
                _image(preview_rgb(fused.image), self.get_clock().now().to_msg())
            )
        return []

    def _message(
        self,
        verdict: Verdict,
        robot: StampedRobot,
        fused: FusedObservation,
        goal: tuple[float, float, float] | None,
    ) -> Observation:
        state: RobotState = robot.state
        stamps = [verdict.clouds[name].stamp_ns for name in self._cameras]
        message = Observation()
        message.header.stamp = _time(min(stamps))
        message.header.frame_id = "base_link"
        message.contract_sha256 = self._contract.weights_sha256
        message.episode_id, message.step_index = robot.episode_id, robot.executed_steps
        message.sequence = self._sequence
        self._sequence += 1
        message.camera_names = list(self._cameras)
        message.cloud_stamps = [_time(stamp) for stamp in stamps]
        message.robot_stamp = state.header.stamp
        message.tcp_position = state.tcp_pose.position
        message.tcp_yaw_rad = state.tcp_yaw_rad
        message.gripper_opening = state.gripper_opening
        message.holding = state.holding
        if goal is not None:
            message.has_goal = True
            message.goal_position = Point(x=goal[0], y=goal[1], z=goal[2])
        message.unseen_fraction = fused.unseen_fraction
        message.channels, message.height, message.width = fused.image.shape
        # An array.array passes rclpy's checks as it is; a list would be checked number by number.
        message.image = array.array("f", fused.image.tobytes())
        return message

    def _publish_status(self, findings: list[Finding], verdict: Verdict) -> None:
        if not self._news.is_news(findings):
            return
        message = PerceptionStatus()
        message.header.stamp = self.get_clock().now().to_msg()
        message.state = PerceptionStatus.WAITING if findings else PerceptionStatus.READY
        message.reasons = [str(finding) for finding in findings]
        message.camera_names = list(self._cameras)
        message.cloud_ages_s = list(verdict.cloud_ages_s)
        self._status.publish(message)
        if findings:
            self.get_logger().warning(
                "waiting: " + "; ".join(str(f) for f in findings), throttle_duration_sec=2.0
            )
        else:
            self.get_logger().info("every source is fresh", throttle_duration_sec=2.0)

    def _publish_diagnostics(self) -> None:
        verdict = self._monitor.judge(self._now_ns())
        status = DiagnosticStatus(name="depth_fusion", hardware_id=self._cell)
        ok = not worth_telling(verdict.findings)
        status.level = DiagnosticStatus.OK if ok else DiagnosticStatus.WARN
        status.message = "ready" if ok else "; ".join(str(f) for f in verdict.findings)
        values = self._figures.values(verdict.cloud_ages_s, self._sequence)
        status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
        message = DiagnosticArray(status=[status])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    def _publish_camera_frames(self) -> None:
        """Static transforms of the cameras, where ROS's tf2 is installed.

        A frame has one parent: a camera driver that publishes its own must be told not to.
        """
        try:
            from geometry_msgs.msg import TransformStamped
            from tf2_msgs.msg import TFMessage
        except ImportError:
            return
        transforms = []
        for camera in self._camera_poses.values():
            item = TransformStamped()
            item.header.stamp = self.get_clock().now().to_msg()
            item.header.frame_id, item.child_frame_id = "base_link", camera.optical_frame
            translation, rotation = item.transform.translation, item.transform.rotation
            translation.x, translation.y, translation.z = camera.position_m
            rotation.x, rotation.y, rotation.z, rotation.w = camera.quaternion_xyzw
            transforms.append(item)
        self._static_frames = self.create_publisher(TFMessage, "/tf_static", qos.LATCHED)
        self._static_frames.publish(TFMessage(transforms=transforms))

    def _now_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)


def _points(cloud: Cloud) -> np.ndarray:
    return cloud.points


def _pose(state: RobotState) -> RobotPose:
    position = state.tcp_pose.position
    return RobotPose(
        joints_rad=tuple(float(angle) for angle in state.joint_positions),
        tcp_position_m=(position.x, position.y, position.z),
        yaw_rad=state.tcp_yaw_rad,
        opening=state.gripper_opening,
        holding=state.holding,
    )


def _image(rgb: np.ndarray, stamp: Time) -> Image:
    message = Image(height=rgb.shape[0], width=rgb.shape[1], encoding="rgb8", step=3 * rgb.shape[1])
    message.header.stamp, message.header.frame_id = stamp, "base_link"
    message.data = array.array("B", rgb.tobytes())
    return message


def _nanoseconds(stamp: Time) -> int:
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def _time(nanoseconds: int) -> Time:
    return Time(sec=nanoseconds // 1_000_000_000, nanosec=nanoseconds % 1_000_000_000)


def main(args: list[str] | None = None) -> int:
    """Entry point of the node."""
    return run_node("depth_fusion", DepthFusionNode, args, refusals=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
