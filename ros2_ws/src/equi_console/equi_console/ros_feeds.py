# SPDX-License-Identifier: MIT
"""What the topics of a cell bring, as plain data in the desk's state."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from equi_interfaces.msg import (
    DeltaCommand,
    ExecutedCommand,
    FaultCode,
    Observation,
    PerceptionStatus,
    RobotState,
    SafetyStatus,
)
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Image
from visualization_msgs.msg import MarkerArray

from equi_console import drawing
from equi_console.desk_state import DeskState, PerceptionView, RobotView, SafetyView, StepView
from equi_console.scene.placement import TableView
from equi_core.contract import ImageSpec
from equi_evaluation.episode_recorder import ImageFormatError, rgb_image
from equi_ros import qos

_OUTCOMES = ("completed", "clipped", "rejected", "interrupted")
_FAULTS = {
    getattr(FaultCode, name): name
    for name in dir(FaultCode)
    if name.isupper() and isinstance(getattr(FaultCode, name), int)
}
_SIDE_VIEW_PERIOD_S = 0.2
_ROBOT_PERIOD_S = 0.045
_RATE_WINDOW = 12
_KEPT_VIEWS = 6


class Feeds:
    """Subscriptions; callbacks convert and store, nothing else."""

    def __init__(self, node: Node, state: DeskState, side_views: tuple[str, ...]) -> None:
        self._state = state
        self.side_views: dict[str, bytes] = {}
        """Newest picture (JPEG) of each camera."""
        self.side_view_number = 0
        self._arrivals: dict[str, deque[float]] = {}
        self._spec = ImageSpec()
        self.views: deque[TableView] = deque(maxlen=_KEPT_VIEWS)
        """The newest height maps, for the scene helper."""
        self._tcp_xy = (0.0, 0.0)
        subscribe = node.create_subscription
        self._robot_read_s = 0.0
        subscribe(RobotState, "robot_state", self._on_robot_bytes, qos.ROBOT_STATE, raw=True)
        subscribe(SafetyStatus, "safety_status", self._on_safety, qos.LATCHED)
        subscribe(PerceptionStatus, "perception_status", self._on_perception, qos.LATCHED)
        subscribe(Observation, "observation", self._on_observation, qos.OBSERVATION)
        subscribe(DeltaCommand, "delta_command", self._on_command, qos.COMMAND)
        subscribe(ExecutedCommand, "executed_command", self._on_executed, qos.EXECUTED)
        subscribe(DiagnosticArray, "diagnostics", self._on_diagnostics, qos.DIAGNOSTICS)
        subscribe(MarkerArray, "belief_marker", self._on_belief, qos.LATCHED)
        for topic in side_views:
            callback = partial(self._on_side_view, topic)
            subscribe(Image, topic, callback, qos.NEWEST, raw=True)

    def _on_robot_bytes(self, data: bytes) -> None:
        now_s = time.monotonic()
        if now_s - self._robot_read_s < _ROBOT_PERIOD_S:
            return  # a page shows ten a second; the driver sends fifty
        self._robot_read_s = now_s
        self._on_robot(deserialize_message(data, RobotState))

    def _on_robot(self, message: RobotState) -> None:
        position = message.tcp_pose.position
        self._tcp_xy = (position.x, position.y)
        self._state.robot = RobotView(
            driver_state=min(int(message.state.value), 4),
            moving=message.moving,
            episode_id=message.episode_id,
            steps=message.executed_steps,
            tcp_m=(position.x, position.y, position.z),
            yaw_rad=message.tcp_yaw_rad,
            joints_rad=tuple(float(value) for value in message.joint_positions),
            opening=float(message.gripper_opening),
            holding=message.holding,
            gripper_connected=message.gripper_connected,
            heard_s=time.monotonic(),
        )

    def _on_safety(self, message: SafetyStatus) -> None:
        fault = int(message.fault.value)
        self._state.safety = SafetyView(
            driver_state=min(int(message.state.value), 4),
            fault=fault,
            fault_name=_FAULTS.get(fault, f"FAULT_{fault}"),
            reasons=tuple(message.reasons),
            operator_action=message.operator_action,
            speed_slider=message.speed_slider,
            speed_scaling=message.speed_scaling,
            fault_count=int(message.fault_count),
        )

    def _on_perception(self, message: PerceptionStatus) -> None:
        ages = zip(message.camera_names, message.cloud_ages_s, strict=False)
        self._state.perception = PerceptionView(
            ready=message.state == PerceptionStatus.READY,
            reasons=tuple(message.reasons),
            ages_s={name: float(age) for name, age in ages},
        )

    def _on_observation(self, message: Observation) -> None:
        shape = (message.channels, message.height, message.width)
        image = np.array(message.image, dtype=np.float32)
        if image.size == int(np.prod(shape)) and image.ndim == 1 and message.channels == 2:
            self._tcp_xy = (message.tcp_position.x, message.tcp_position.y)
            self._state.observation = image.reshape(shape)
            self._state.gripper_at_m = self._tcp_xy
            if message.height == self._spec.size_px:
                tcp = message.tcp_position
                gripper = (message.tcp_yaw_rad, float(message.gripper_opening))
                self.views.append(
                    TableView.of_observation(
                        image.reshape(shape), (tcp.x, tcp.y, tcp.z), gripper, self._spec
                    )
                )
            self._state.observation_number += 1

    def _on_command(self, message: DeltaCommand) -> None:
        self._state.requested = _step(message, message.step_index)
        self._state.observation_number += 1

    def _on_executed(self, message: ExecutedCommand) -> None:
        outcome = _OUTCOMES[message.outcome] if message.outcome < 4 else "?"
        reasons = tuple(message.reasons)
        self._state.executed = _step(message, message.requested.step_index, outcome, reasons)
        self._state.observation_number += 1

    def _on_belief(self, message: MarkerArray) -> None:
        x, y = self._tcp_xy
        self._state.beliefs = tuple(
            (marker.pose.position.x - x, marker.pose.position.y - y, float(marker.text))
            for marker in message.markers
            if marker.text
        )
        self._state.observation_number += 1

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            for item in status.values:
                if item.key.endswith(" p50 [ms]"):
                    try:
                        self._state.add_latency(
                            item.key.removesuffix(" p50 [ms]"), float(item.value)
                        )
                    except ValueError:
                        continue

    def _on_side_view(self, topic: str, data: bytes) -> None:
        arrivals = self._arrivals.setdefault(topic, deque(maxlen=_RATE_WINDOW))
        last_s = arrivals[-1] if arrivals else 0.0
        now_s = time.monotonic()
        arrivals.append(now_s)
        if len(arrivals) > 1:
            rate = (len(arrivals) - 1) / max(now_s - arrivals[0], 1e-3)
            self._state.rates_hz = {**self._state.rates_hz, topic.split("/")[0]: rate}
        if now_s - last_s < _SIDE_VIEW_PERIOD_S / 2 and topic in self.side_views:
            return  # decoding costs more than it shows
        message: Any = deserialize_message(data, Image)
        try:
            shape = (message.height, message.width)
            rgb = rgb_image(message.encoding, shape, message.step, message.data)
        except ImageFormatError:
            return
        self.side_views[topic] = drawing.side_view(rgb)
        self.side_view_number += 1


def _step(
    message: Any, step_index: int, outcome: str = "", reasons: tuple[str, ...] = ()
) -> StepView:
    step = message.translation
    return StepView(
        step_index=int(step_index),
        step_m=(step.x, step.y, step.z),
        yaw_rad=message.yaw_rad,
        closedness=message.gripper_closedness,
        outcome=outcome,
        reasons=reasons,
    )
