# SPDX-License-Identifier: MIT
"""depth_fusion_node: point clouds and robot state in, Observation out; says why when none comes.

    ros2 run equi_perception depth_fusion_node --ros-args \
        -p model:=models/block_picking -p calibration:=calibration/results/sim -p cell:=sim

A lifecycle node: configure refuses a contract or calibration that must not be used. While it is
active it publishes an observation for every new pair of clouds that is fresh, simultaneous, and
taken after the arm came to rest; anything else is explained on `perception_status`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from equi_interfaces.msg import Observation, PerceptionStatus, RobotState
from equi_interfaces.srv import ResetEpisode
from sensor_msgs.msg import Image

from equi_core.calibration import ANY_SERIAL, CellCalibration
from equi_core.cell_geometry import CellGeometry
from equi_core.contract import PolicyContract
from equi_core.motion.arm_models import UR5, arm_model
from equi_core.observation.builder import FusedObservation, FusionConfig, ObservationBuilder
from equi_core.observation.image import ObservationError
from equi_perception import messages
from equi_perception.cloud_layout import Cloud, CloudLayoutError
from equi_perception.depth_image import DepthImage
from equi_perception.freshness import (
    Cause,
    FreshnessLimits,
    FreshnessMonitor,
    Issue,
    StampedCloud,
    StampedRobot,
    SyncStatus,
)
from equi_perception.goals import EpisodeGoals, GoalError
from equi_perception.outlier_removal import without_outliers
from equi_perception.perception_report import PerceptionMetrics, StatusDebouncer, reportable
from equi_perception.preview import preview_rgb
from equi_perception.ros_camera_inputs import CameraInputs
from equi_ros import qos
from equi_ros.diagnostics import Health
from equi_ros.lifecycle.managed_node import ManagedNode
from equi_ros.parameters import declare, declare_settings, read_settings
from equi_ros.publisher_guard import PublisherGuard
from equi_ros.run_node import run_node
from equi_ros.transforms import StaticFrames

_TICK_S = 0.02


class DepthFusionNode(ManagedNode):
    """Wires topics to the libraries; decides nothing itself."""

    def __init__(self) -> None:
        super().__init__("depth_fusion")
        self._declare_parameters()
        self._builder: ObservationBuilder | None = None
        self._goals = EpisodeGoals("", needed=False)
        self._sequence = 0
        self._static_frames = StaticFrames(self)
        self._connect()

    def _declare_parameters(self) -> None:
        self._cameras: tuple[str, ...] = declare(
            self, "cameras", ("cam_left", "cam_right"), "names of the cameras"
        )
        self._cell = str(declare(self, "cell", "sim", "name of the cell, as in its calibration"))
        for name in self._cameras:
            declare(
                self, f"{name}.serial", "", f"serial number of {name}; `any`: it is not checked"
            )
        for name, words in (
            ("model", "folder with the policy's contract.json"),
            ("calibration", "folder with calibration.yaml"),
        ):
            declare(self, name, "", words, read_only=False)
        declare(
            self,
            "ignore_calibration_verdict",
            False,
            "use a calibration that failed, expired or belongs to another cell; for rehearsals",
        )
        declare(
            self,
            "frame_prefix",
            "",
            "in front of the frames of cameras and transforms; the robot's come with robot_state",
        )
        declare(self, "simulated", False, "the cell is simulated: an unsigned model will do")
        declare(self, "remove_outliers", False, "drop lone points before fusing", read_only=False)
        declare(self, "robot_model", UR5.name, "the arm that is taken out of the clouds")
        declare_settings(self, CellGeometry(), prefix="geometry.")
        declare_settings(self, FusionConfig(), read_only=False)
        declare_settings(self, FreshnessLimits(), read_only=False)

    def _connect(self) -> None:
        self._observations = self.create_lifecycle_publisher(
            Observation, "observation", qos.OBSERVATION
        )
        self._previews = self.create_lifecycle_publisher(
            Image, "observation_preview", qos.OBSERVATION
        )
        self._status = self.create_publisher(PerceptionStatus, "perception_status", qos.LATCHED)
        self._guard = PublisherGuard(self)
        self._guard.claim(self._observations)
        CameraInputs(self, self._guard, self._cameras, self._on_cloud, self._on_unreadable)
        self._guard.subscribe(
            RobotState,
            "robot_state",
            self._on_robot,
            qos.ROBOT_STATE_HISTORY,
            publisher="rtde_driver",
        )
        self.create_service(ResetEpisode, "~/reset_episode", self._on_reset)
        self.create_timer(_TICK_S, self._tick)
        self.diagnostics.add(self._health)

    # Lifecycle ---------------------------------------------------------------------------------

    def configure(self) -> None:
        """Load contract and calibration; refused if one of them must not be used."""
        contract = PolicyContract.load(
            Path(self._text("model")) / "contract.json",
            allow_unsigned=bool(self.get_parameter("simulated").value),
        )
        calibration = self._load_calibration()
        self._contract_sha256 = contract.sha256
        self._goals = EpisodeGoals(contract.task, needed=contract.has_goal)
        self._calibrated = {name: calibration.camera(name) for name in self._cameras}
        builder = ObservationBuilder(
            contract.image,
            {name: camera.base_from_raw_points for name, camera in self._calibrated.items()},
            read_settings(self, FusionConfig()),
            read_settings(self, CellGeometry(), prefix="geometry."),
            arm_model(self._text("robot_model")),
        )
        builder.warm_up()
        self._remove_outliers = bool(self.get_parameter("remove_outliers").value)
        self._monitor = FreshnessMonitor(self._cameras, read_settings(self, FreshnessLimits()))
        self._used_stamps_ns: dict[str, int] = {}
        self._debouncer = StatusDebouncer()
        self._metrics = PerceptionMetrics(self._cameras)
        self._unreadable: dict[str, Issue] = {}
        self._builder = builder
        self.diagnostics.hardware_id = self._hardware_id()
        self._publish_camera_frames()
        self._publish_inactive()
        self.get_logger().info(
            f"ready: task {contract.task}, cameras {', '.join(self._cameras)}, "
            f"calibration of cell '{calibration.cell}' from {calibration.created.date()}"
        )

    def activate(self) -> None:
        """Publish observations from now on; the state of the sources is told anew."""
        self._debouncer = StatusDebouncer()

    def deactivate(self) -> None:
        """Publish no more observations."""
        self._publish_inactive()

    def cleanup(self) -> None:
        """Forget contract and calibration."""
        self._builder = None
        self._goals = EpisodeGoals("", needed=False)

    def _hardware_id(self) -> str:
        serials = (self._text(f"{name}.serial") or name for name in self._cameras)
        return f"{self._cell}: {', '.join(serials)}"

    def _text(self, name: str) -> str:
        return str(self.get_parameter(name).value)

    def _load_calibration(self) -> CellCalibration:
        calibration = CellCalibration.load(Path(self._text("calibration")))
        serials = {name: self._text(f"{name}.serial") for name in self._cameras}
        if self.get_parameter("ignore_calibration_verdict").value:
            self.get_logger().warning(
                "calibration verdict, age and cell are NOT checked: ignore_calibration_verdict"
            )
        else:
            calibration.require_usable(self._cameras, cell=self._cell, serials=serials)
        unchecked = [name for name, serial in serials.items() if serial == ANY_SERIAL]
        if unchecked:
            self.get_logger().warning(
                f"the serial number of {', '.join(unchecked)} is NOT checked ('any'): another "
                "camera, or two swapped ones, would go unnoticed"
            )
        return calibration

    # Callbacks ---------------------------------------------------------------------------------

    def _on_unreadable(self, camera: str, problem: str) -> None:
        if self._builder is not None:
            self._unreadable[camera] = Issue(Cause.CLOUD_UNREADABLE, f"{camera}: {problem}")

    def _on_cloud(self, camera: str, cloud: Cloud | DepthImage) -> None:
        if self._builder is None:
            return
        expected = self._text("frame_prefix") + self._calibrated[camera].optical_frame
        if cloud.frame_id != expected:
            self._unreadable[camera] = Issue(
                Cause.CLOUD_UNREADABLE,
                f"{camera} sends frame '{cloud.frame_id}', but '{expected}' was calibrated; "
                "are two cameras swapped?",
            )
            return
        self._unreadable.pop(camera, None)
        stamped = StampedCloud(cloud.stamp_ns, self._now_ns(), cloud)
        if not self._monitor.add_cloud(camera, stamped):
            self._metrics.count_rejected(camera)
        self._tick()

    def _on_robot(self, message: RobotState) -> None:
        if self._builder is None:
            return
        self._monitor.add_robot(messages.stamped_robot(message), self._now_ns())

    def _on_reset(
        self, request: ResetEpisode.Request, response: ResetEpisode.Response
    ) -> ResetEpisode.Response:
        if not request.episode_id:
            response.accepted, response.message = False, "episode_id is empty; give it a name"
            return response
        if not self.is_active:
            response.message = f"perception is {self.state_label}; activate it first"
            return response
        goal = request.goal_position
        try:
            self._goals.begin(
                request.episode_id, (goal.x, goal.y, goal.z) if request.has_goal else None
            )
        except GoalError as error:
            response.message = str(error)
            return response
        response.accepted = True
        return response

    def _tick(self) -> None:
        if not self.is_active or self._builder is None:
            return
        status = self._monitor.evaluate(self._now_ns())
        foreign = [Issue(Cause.FOREIGN_PUBLISHER, text) for text in self._guard.problems()]
        issues = [*foreign, *self._unreadable.values(), *status.issues]
        if not issues and status.robot is not None and self._is_new(status):
            issues = self._observe(self._builder, status, status.robot)
        self._publish_status(reportable(issues), status)

    # Observing ---------------------------------------------------------------------------------

    def _is_new(self, status: SyncStatus) -> bool:
        """Both clouds are others than those of the last observation; the monitor orders them."""
        return all(
            cloud.stamp_ns != self._used_stamps_ns.get(name)
            for name, cloud in status.clouds.items()
        )

    def _observe(
        self, builder: ObservationBuilder, status: SyncStatus, robot: StampedRobot
    ) -> list[Issue]:
        """Build and publish an observation; returns what prevented it."""
        begin_s = time.perf_counter()
        missing = self._goals.issues(robot.episode_id)
        if missing:
            return missing
        self._used_stamps_ns = {name: status.clouds[name].stamp_ns for name in self._cameras}
        goal_m = self._goals.of(robot.episode_id)
        try:
            points = {name: cloud.cloud.points for name, cloud in status.clouds.items()}
            if self._remove_outliers:
                points = {name: without_outliers(rows) for name, rows in points.items()}
            decoded_s = time.perf_counter()
            fused = builder.build(
                points, messages.robot_pose(robot.state), None if goal_m is None else goal_m[:2]
            )
        except CloudLayoutError as error:
            return [Issue(Cause.CLOUD_UNREADABLE, str(error))]
        except ObservationError as error:
            return [Issue(Cause.CLOUD_EMPTY, str(error))]
        observation = messages.observation_message(
            fused,
            self._used_stamps_ns,
            robot,
            goal_m,
            contract_sha256=self._contract_sha256,
            sequence=self._sequence,
        )
        self._observations.publish(observation)
        self._sequence += 1
        self._add_metrics(fused, begin_s, decoded_s)
        if self._previews.get_subscription_count():
            image = messages.image_message(preview_rgb(fused.image), observation.header)
            self._previews.publish(image)
        return []

    def _add_metrics(self, fused: FusedObservation, begin_s: float, decoded_s: float) -> None:
        fusing_ms = sum(fused.stages_ms.values())
        exposure_ns = min(self._used_stamps_ns.values())
        self._metrics.add(
            fused,
            {
                "decode": (decoded_s - begin_s) * 1e3,
                **fused.stages_ms,
                "publish": (time.perf_counter() - decoded_s) * 1e3 - fusing_ms,
                "exposure_to_observation": (self._now_ns() - exposure_ns) / 1e6,
            },
        )

    # Reporting ---------------------------------------------------------------------------------

    def _publish_status(self, issues: list[Issue], status: SyncStatus) -> None:
        if not self._debouncer.changed(issues):
            return
        self._status.publish(messages.status_message(issues, status, self._cameras, self._stamp()))
        if issues:
            text = "; ".join(str(issue) for issue in issues)
            self.get_logger().warning(f"waiting: {text}", throttle_duration_sec=2.0)
        else:
            self.get_logger().info("every source is fresh", throttle_duration_sec=2.0)

    def _publish_inactive(self) -> None:
        reason = "inactive: perception is configured and waits to be activated"
        self._status.publish(messages.inactive_message(reason, self._stamp()))

    def _health(self) -> Health | None:
        if not self.is_active or self._builder is None:
            return None
        status = self._monitor.evaluate(self._now_ns())
        ok = not reportable(status.issues)
        return Health(
            "ready" if ok else "; ".join(str(issue) for issue in status.issues),
            {**self._metrics.values(status.cloud_ages_s, self._sequence), **self._guard.counts()},
            DiagnosticStatus.OK if ok else DiagnosticStatus.WARN,
        )

    def _publish_camera_frames(self) -> None:
        """Where the task frame is, and the cameras' links; their drivers publish the rest."""
        stamp, prefix = self._stamp(), self._text("frame_prefix")
        geometry = read_settings(self, CellGeometry(), prefix="geometry.")
        self._static_frames.publish(
            [
                *messages.task_transform(geometry, stamp, prefix),
                *messages.camera_transforms(self._calibrated.values(), stamp, prefix),
            ]
        )

    def _now_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _stamp(self) -> Time:
        return self.get_clock().now().to_msg()


def main(args: list[str] | None = None) -> int:
    """Entry point of the node."""
    return run_node("depth_fusion", DepthFusionNode, args, refusals=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
