# SPDX-License-Identifier: MIT
"""Checks for what is wrong: servo process, connection, limits, gripper. Decides, acts never."""

from __future__ import annotations

import math
import time

import numpy as np

from equi_control.driver.config import DriverConfig
from equi_control.driver.state import Fault, FaultCode, fault_of_code, fault_of_problem
from equi_control.robotiq.worker import GripperReport
from equi_control.servo.process import ServoProcess
from equi_control.servo.shared_state import Phase, ServoState


class FaultMonitor:
    """Remembers since when something is missing; everything else is handed in."""

    def __init__(self, config: DriverConfig) -> None:
        self._config = config
        self._connect_since_s = time.monotonic()
        self._gripper_seen_s = time.monotonic()
        self._fast_since_s = math.inf

    def connecting(self) -> None:
        """A new servo process starts to connect."""
        self._connect_since_s = time.monotonic()

    def check(
        self, servo: ServoProcess, servo_state: ServoState, gripper: GripperReport, *, driving: bool
    ) -> Fault | None:
        """The fault that is there now, or None.

        Args:
            servo: the servo process.
            servo_state: its newest shared state.
            gripper: newest report on the gripper.
            driving: whether the driver holds the arm; an unused gripper may be missing.
        """
        phase = servo_state.phase
        if gripper.connected:
            self._gripper_seen_s = time.monotonic()
        if phase is Phase.FAULTED:
            return fault_of_problem(servo_state.problem, servo_state.message)
        if not servo.alive:
            return fault_of_code(FaultCode.SERVO_FAILED, "the servo process died")
        if phase is Phase.CONNECTING:
            return self._connection_fault()
        if servo.silence_s() > self._config.servo_silence_s:
            return fault_of_code(FaultCode.SERVO_FAILED, "the servo process did not respond")
        if phase is not Phase.STREAMING:
            self._fast_since_s = math.inf
            return None
        return self._limit_fault(servo_state) or self._gripper_fault(gripper, driving)

    def _connection_fault(self) -> Fault | None:
        limit_s = self._config.connect_timeout_s
        if time.monotonic() - self._connect_since_s <= limit_s:
            return None
        host = self._config.servo.link.host
        return fault_of_code(
            FaultCode.CONNECTION_LOST, f"no connection to {host} within {limit_s:.0f} s"
        )

    def _limit_fault(self, servo_state: ServoState) -> Fault | None:
        config = self._config
        now_s = time.monotonic()
        speed = float(np.linalg.norm(servo_state.twist[:3]))
        # Written so that a value that is not a number counts as a violation.
        too_fast = not speed <= config.max_measured_speed_m_s
        self._fast_since_s = min(self._fast_since_s, now_s) if too_fast else math.inf
        if now_s - self._fast_since_s >= config.overspeed_grace_s:
            return fault_of_code(
                FaultCode.LIMIT_VIOLATED,
                f"measured TCP speed {speed:.2f} m/s is above {config.max_measured_speed_m_s}",
            )
        position = servo_state.position_m
        box = config.servo.limits.workspace
        outside_m = float(np.linalg.norm(position - np.clip(position, box.lower_m, box.upper_m)))
        if not outside_m <= config.max_measured_outside_m:
            return fault_of_code(
                FaultCode.LIMIT_VIOLATED, f"measured TCP is {outside_m:.3f} m outside the box"
            )
        return None

    def _gripper_fault(self, gripper: GripperReport, driving: bool) -> Fault | None:
        missing_s = time.monotonic() - self._gripper_seen_s
        if driving and missing_s > self._config.gripper_grace_s:
            return fault_of_code(FaultCode.GRIPPER, gripper.reason)
        if driving and gripper.jammed:
            return fault_of_code(
                FaultCode.GRIPPER,
                f"the fingers are jammed: told to move, they stay at opening {gripper.opening:.2f}",
            )
        if gripper.connected and gripper.fault >= 0x0A:
            return fault_of_code(FaultCode.GRIPPER, f"the gripper reports fault {gripper.fault}")
        return None
