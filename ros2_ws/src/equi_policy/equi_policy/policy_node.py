# SPDX-License-Identifier: MIT
"""policy_node: Observation in, DeltaCommand out, one inference per fresh observation.

    ros2 run equi_policy policy_node --ros-args -p model:=models/block_picking

The recurrent state belongs to an episode id and is kept by `equi_policy.session`. The node adds
the RunEpisode action (home, reset everyone, run to the end) and the latency of each stage.
A lifecycle node: configure loads the model and refuses one that is missing, damaged or of another
version; while it is not active it sends no command and takes no episode.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from equi_interfaces.msg import (
    DeltaCommand,
    DriverState,
    ExecutedCommand,
    Observation,
    PerceptionStatus,
    RobotState,
    SafetyStatus,
)
from equi_interfaces.srv import ResetEpisode

from equi_policy.errors import WeightsError
from equi_policy.latency import LatencyTracker
from equi_policy.messages import executed_step, received_observation
from equi_policy.ros_belief import BeliefPublisher
from equi_policy.ros_episode_server import EpisodeServer
from equi_policy.session import (
    EXPECTED_REFUSALS,
    Act,
    PolicySession,
    RecurrentPolicy,
    Refusal,
    Refused,
    SessionLimits,
)
from equi_ros import qos
from equi_ros.diagnostics import Health
from equi_ros.lifecycle.managed_node import ManagedNode, TransitionRefused
from equi_ros.message_checks import require_past
from equi_ros.parameters import declare, declare_settings, read_settings
from equi_ros.publisher_guard import PublisherGuard
from equi_ros.run_node import run_node
from equi_ros.stamps import nanoseconds

_MOST_REJECTIONS = 10
_STOP_TIMEOUT_S = 3.0
_DRIVER_REFUSES = {
    DriverState.IDLE: "the driver is not active; nothing may move before somebody activates it: "
    "ros2 lifecycle set {driver} activate",
    DriverState.PAUSED: "an operator paused the arm; it continues after: "
    "ros2 service call {driver}/resume std_srvs/srv/Trigger",
}


class PolicyNode(ManagedNode):
    """Wires observations and reports to a `PolicySession`."""

    policy: RecurrentPolicy[Any]
    session: PolicySession[Any]

    def __init__(self) -> None:
        super().__init__("policy")
        declare(self, "model", "", "folder with contract.json and weights", read_only=False)
        declare(self, "simulated", False, "the cell is simulated: an unsigned model will do")
        declare_settings(self, SessionLimits(), read_only=False)
        self.latency = LatencyTracker()
        self.robot: RobotState | None = None
        self.safety: SafetyStatus | None = None
        self.perception: PerceptionStatus | None = None
        self.last_activity_s = time.monotonic()
        self.broken = ""
        self._last_act: Act | None = None
        self._refusals: Counter[str] = Counter()
        self._last_step_at_s: float | None = None
        self._connect()
        self._belief = BeliefPublisher(self)
        self.episodes = EpisodeServer(self)

    # Lifecycle ---------------------------------------------------------------------------------

    def configure(self) -> None:
        """Load the policy; refused if it must not be used."""
        self.policy = self.load_policy()
        self.session = PolicySession(self.policy, read_settings(self, SessionLimits()))
        self.latency = LatencyTracker()
        contract = self.policy.contract
        self._belief.load(Path(str(self.get_parameter("model").value)), contract)
        self.diagnostics.hardware_id = contract.task
        self.get_logger().info(
            f"ready: task {contract.task}, group {contract.group}, "
            f"contract {contract.sha256[:12]}, weights {contract.weights_sha256[:12] or 'none'}"
        )

    async def deactivate(self) -> None:
        """End the running episode, which stops the arm, and send no more commands."""
        self.episodes.stop()
        if not await self.waiter.until(lambda: not self.episodes.running, _STOP_TIMEOUT_S):
            raise TransitionRefused(f"the episode did not end within {_STOP_TIMEOUT_S:g} s")
        self.session.end()

    def load_policy(self) -> RecurrentPolicy[Any]:
        """The policy of the parameter `model`; a subclass may run another one."""
        # Takes seconds: not before the process can answer and be stopped.
        import torch

        from equi_policy.deployed_policy import DeployedPolicy

        torch.set_num_threads(1)
        folder = Path(str(self.get_parameter("model").value))
        simulated = bool(self.get_parameter("simulated").value)
        policy = DeployedPolicy.load(folder, allow_unsigned=simulated)
        size = policy.contract.image.size_px
        # The first inference allocates and chooses kernels: not while the arm waits.
        blank = np.full((2, size, size), 0.2, dtype=np.float32)
        blank[1] = 0.0
        for _ in range(3):
            action = policy.step(blank, policy.initial_state()).action
        if not np.isfinite(action).all():
            raise WeightsError(
                str(folder),
                f"answers {action.tolist()} for an empty table; export the policy again",
            )
        return policy

    def _connect(self) -> None:
        self._commands = self.create_lifecycle_publisher(DeltaCommand, "delta_command", qos.COMMAND)
        guard = self.guard = PublisherGuard(self)
        guard.claim(self._commands)
        driver, perception = "rtde_driver", "depth_fusion"
        guard.subscribe(
            Observation, "observation", self._on_observation, qos.OBSERVATION, publisher=perception
        )
        guard.subscribe(
            ExecutedCommand, "executed_command", self._on_executed, qos.EXECUTED, publisher=driver
        )
        guard.subscribe(
            RobotState, "robot_state", self._on_robot, qos.ROBOT_STATE, publisher=driver
        )
        # Whoever reports a fault is believed: that only ever ends an episode.
        guard.subscribe(
            SafetyStatus,
            "safety_status",
            self._on_safety,
            qos.LATCHED,
            publisher=driver,
            believe_all=True,
        )
        guard.subscribe(
            PerceptionStatus,
            "perception_status",
            self._on_perception,
            qos.LATCHED,
            publisher=perception,
            believe_all=True,
        )
        self.create_service(ResetEpisode, "~/reset_episode", self._on_reset)
        self.diagnostics.add(self._health)

    # Callbacks ---------------------------------------------------------------------------------

    def _on_observation(self, message: Observation) -> None:
        if not self.is_active:
            return
        arrived_s, now_ns = time.perf_counter(), self.now_ns()
        try:
            observation = received_observation(message)
        except ValueError as error:
            self._count_refusal(Refused(Refusal.MALFORMED, str(error)))
            return
        if not self.ready_to_act():
            return
        answer = self.session.offer(observation, now_ns)
        if isinstance(answer, Refused):
            self._count_refusal(answer)
            return
        inferred_s = time.perf_counter()
        self._commands.publish(self._command(answer, message))
        sent_s = time.perf_counter()
        self.latency.add("exposure_to_observation", (now_ns - observation.stamp_ns) / 1e6)
        self.latency.add("inference", (inferred_s - arrived_s) * 1e3)
        self.latency.add("observation_to_command", (sent_s - arrived_s) * 1e3)
        if self._last_step_at_s is not None and answer.step_index > 0:
            self.latency.add("step", (sent_s - self._last_step_at_s) * 1e3)
        self._last_step_at_s = sent_s
        self._last_act = answer
        self.last_activity_s = time.monotonic()
        self._belief.publish(self.session.state, message)

    def _on_executed(self, message: ExecutedCommand) -> None:
        if not self.is_active:
            return
        step = executed_step(message)
        require_past("header.stamp", message.header.stamp, self.now_ns())
        if not self.session.executed(step):
            return
        self.last_activity_s = time.monotonic()
        if not step.moved:
            reasons = "; ".join(message.reasons)
            self.get_logger().warning(f"step {step.step_index} was rejected: {reasons}")
            if self.session.rejected_in_a_row >= _MOST_REJECTIONS:
                times = f"{_MOST_REJECTIONS} times: {reasons}"
                self.broken = f"the driver rejected step {step.step_index} {times}"
            return
        sent_ns = nanoseconds(message.requested.header.stamp)
        received_ns = nanoseconds(message.received_stamp)
        begin_ns = nanoseconds(message.motion_start_stamp)
        self.latency.add("command_to_motion", (max(begin_ns, received_ns) - sent_ns) / 1e6)
        self.latency.add("motion", (step.end_ns - begin_ns) / 1e6)
        self.episodes.after_step()

    def _on_robot(self, message: RobotState) -> None:
        self.robot = message

    def _on_safety(self, message: SafetyStatus) -> None:
        self.safety = message

    def _on_perception(self, message: PerceptionStatus) -> None:
        self.perception = message

    def _on_reset(
        self, request: ResetEpisode.Request, response: ResetEpisode.Response
    ) -> ResetEpisode.Response:
        if not self.is_active:
            response.message = f"the policy is {self.state_label}; activate it first"
            return response
        try:
            self.begin(request.episode_id)
        except ValueError as error:
            response.accepted, response.message = False, str(error)
            return response
        response.accepted = True
        return response

    # Acting -------------------------------------------------------------------------------------

    def begin(self, episode_id: str) -> None:
        """Start an episode from the policy's initial state."""
        self.session.begin(episode_id)
        self.broken = ""
        self.last_activity_s = time.monotonic()
        self._last_step_at_s = None

    def ready_to_act(self) -> bool:
        """Whether a command may be sent at all: between steps the referee is asked first."""
        return self.is_active and not self.foreign_publishers and self.episodes.may_act()

    @property
    def foreign_publishers(self) -> str:
        """Who else publishes what this policy reads or sends, in words; empty if nobody does."""
        return "; ".join(self.guard.problems())

    @property
    def driver_refuses(self) -> str:
        """Why the driver executes nothing until a person says so; empty if it does."""
        words = "" if self.robot is None else _DRIVER_REFUSES.get(self.robot.state.value, "")
        return words.format(driver=f"{self.get_namespace().rstrip('/')}/rtde_driver")

    @property
    def fault(self) -> str:
        """The driver's latched fault in words; empty if none."""
        safety = self.safety
        if safety is None or safety.state.value != DriverState.FAULT:
            return ""
        return "; ".join(safety.reasons) or f"fault {safety.fault.value}"

    def now_ns(self) -> int:
        """Present time of the node's clock."""
        return int(self.get_clock().now().nanoseconds)

    def _command(self, act: Act, observation: Observation) -> DeltaCommand:
        command = DeltaCommand()
        command.header.stamp = self.get_clock().now().to_msg()
        command.header.frame_id = observation.header.frame_id
        command.episode_id, command.step_index = act.episode_id, act.step_index
        command.observation_sequence = act.observation.sequence
        command.observation_stamp = observation.header.stamp
        command.gripper_closedness = act.delta.closedness
        step = command.translation
        step.x, step.y, step.z = (float(value) for value in act.delta.step_m)
        command.yaw_rad = act.delta.yaw_rad
        return command

    def _count_refusal(self, refused: Refused) -> None:
        self._refusals[refused.reason.value] += 1
        if refused.reason in EXPECTED_REFUSALS | {Refusal.NO_EPISODE, Refusal.BEFORE_EXECUTION}:
            return
        if refused.reason in (Refusal.BAD_ACTION, Refusal.SKIPPED):
            self.broken = str(refused)
        self.get_logger().warning(f"refused: {refused}", throttle_duration_sec=2.0)

    def _health(self) -> Health | None:
        if not self.is_active:
            return None
        text = self.broken or (
            f"episode {self.session.episode_id}, step {self.session.steps}"
            if self.session.episode_id
            else "no episode"
        )
        values = {f"refused {reason}": str(count) for reason, count in self._refusals.items()}
        values.update(self.guard.counts())
        if self._last_act is not None:
            values["action std"] = np.array2string(self._last_act.std, precision=3)
            values["state norm"] = f"{self._last_act.state_norm:.3f}"
            values["action"] = np.array2string(self._last_act.policy_action, precision=3)
        for stage, latency in self.latency.summary().items():
            values[f"{stage} p50 [ms]"] = f"{latency.p50_ms:.2f}"
            values[f"{stage} p99 [ms]"] = f"{latency.p99_ms:.2f}"
            values[f"{stage} samples"] = str(latency.count)
        return Health(text, values, DiagnosticStatus.ERROR if self.broken else DiagnosticStatus.OK)


def main(args: list[str] | None = None) -> int:
    """Entry point of the node."""
    return run_node("policy", PolicyNode, args, refusals=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
