# SPDX-License-Identifier: MIT
"""An arm that is only listened to: a thread reads RTDE, and there is nothing to command it with.

No program is loaded and no input register is written, so the pendant keeps the arm: it may be
jogged or led by hand meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_control.rtde.config import LinkError
from equi_control.rtde.robot_reading import Problem, Reading, problem_of
from equi_control.rtde.rtde_session import RtdeSession
from equi_control.servo.config import ServoConfig
from equi_control.servo.shared_state import Phase, ServoState
from equi_core.geometry import ur_pose_to_matrix, yaw_of
from equi_core.motion.ur5_kinematics import forward

FloatArray = NDArray[np.float64]

_LOG = logging.getLogger(__name__)

_OUTPUTS = (
    *("timestamp", "actual_q", "actual_qd", "actual_TCP_pose", "actual_TCP_speed"),
    *("actual_TCP_force", "robot_mode", "safety_mode", "safety_status_bits", "runtime_state"),
    *("target_speed_fraction", "speed_scaling"),
)
_AT_REST_M_S = 0.003


class ListeningArm:
    """The measured state of an arm, as the step runner and the messages know it."""

    def __init__(self, config: ServoConfig) -> None:
        self._config = config
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.last_state: ServoState | None = None
        self.lost = ""
        """Why nothing is heard any more; empty while the controller is heard."""

    @property
    def streaming_state(self) -> ServoState | None:
        """The newest state; None before the first, and after a loss."""
        return None if self.lost else self.last_state

    @property
    def measured_pose(self) -> FloatArray:
        """`task_from_tcp` (4, 4) as measured."""
        return np.eye(4) if self.last_state is None else self.last_state.task_from_tcp

    def set_target(self, target: FloatArray) -> None:
        """Take no notice: there is no way from here to the arm."""

    def connect(self) -> None:
        """Begin to listen."""
        self.close()
        self._stop = threading.Event()
        self.lost, self.last_state = "", None
        self._thread = threading.Thread(target=self._listen, args=(self._stop,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(3.0)
        self._thread = None

    def problem(self) -> tuple[str, str]:
        """Code (`Problem`) and words of what is wrong with the robot; two empty texts if nothing.

        A stopped program is none: nothing was loaded.
        """
        if self.lost:
            return Problem.CONNECTION_LOST.value, self.lost
        state = self.last_state
        if state is None:
            return "", ""
        if time.monotonic() - state.heartbeat_s > self._config.max_state_age_s:
            return Problem.CONNECTION_LOST.value, "the controller fell silent"
        return state.problem.replace(Problem.NONE.value, ""), state.message

    def _listen(self, stop: threading.Event) -> None:
        try:
            with RtdeSession(self._config.link.host) as session:
                session.start(_OUTPUTS)
                count = 0
                while not stop.is_set():
                    sample = session.next_sample()
                    count += 1
                    self.last_state = self._state_of(sample.values, sample.arrived_s, count)
        except LinkError as error:
            self.lost = str(error)
            _LOG.error("shadow: %s", error)

    def _state_of(self, values: dict[str, Any], now_s: float, count: int) -> ServoState:
        geometry = self._config.link.geometry
        joints = np.array(values["actual_q"])
        task_from_tcp = geometry.to_task(self._base_link_from_tcp(values, joints))
        twist, wrench = (np.array(values[f"actual_TCP_{name}"]) for name in ("speed", "force"))
        for vector in (twist, wrench):
            # base_link is the controller's base rotated by 180 degrees about z.
            vector[[0, 1, 3, 4]] *= -1.0
        problem = _problem(values, joints)
        return ServoState(
            heartbeat_s=now_s,
            cycles=count,
            phase=Phase.IDLE,
            problem=problem.value,
            message=problem.value.replace("_", " ") if problem is not Problem.NONE else "",
            task_from_tcp=task_from_tcp,
            twist=geometry.rotate_to_task(twist),
            wrench=geometry.rotate_to_task(wrench),
            joints_rad=joints,
            joint_speeds_rad_s=np.array(values["actual_qd"]),
            robot_mode=int(values["robot_mode"]),
            safety_mode=int(values["safety_mode"]),
            commanded=np.array([*task_from_tcp[:3, 3], float(yaw_of(task_from_tcp))]),
            finished=float(np.linalg.norm(twist[:3])) < _AT_REST_M_S,
            speed_slider=float(values["target_speed_fraction"]),
            # Without a program the controller reports 0, which says nothing of the arm.
            speed_scaling=1.0,
        )

    def _base_link_from_tcp(self, values: dict[str, Any], joints: FloatArray) -> FloatArray:
        """The TCP of the cell file. The pendant's is used if it is the same one.

        Else it is computed from the joints by the nominal links, which is good to millimetres.
        """
        limits, link = self._config.joint_limits, self._config.link
        computed: FloatArray = forward(joints, limits.arm) @ link.geometry.flange_from_tcp
        reported = ur_pose_to_matrix(values["actual_TCP_pose"])
        error_m = float(np.linalg.norm(computed[:3, 3] - reported[:3, 3]))
        aligned = float(np.trace(computed[:3, :3].T @ reported[:3, :3])) > 2.99
        return reported if error_m <= limits.max_kinematics_error_m and aligned else computed


def _problem(values: dict[str, Any], joints: FloatArray) -> Problem:
    reading = Reading(
        *(np.eye(4), np.eye(4), np.zeros(6), np.zeros(6), joints, np.zeros(6)),
        controller_time_s=float(values["timestamp"]),
        age_s=0.0,
        connected=True,
        program_state=int(values["runtime_state"]),
        robot_mode=int(values["robot_mode"]),
        safety_mode=int(values["safety_mode"]),
        safety_bits=int(values["safety_status_bits"]),
    )
    problem = problem_of(reading, max_age_s=1.0)
    return Problem.NONE if problem is Problem.PROGRAM_STOPPED else problem
