# SPDX-License-Identifier: MIT
"""Commands of the control script that move nothing: kinematic queries, TCP, payload."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ur_emulator.controller import frames
from ur_emulator.controller.command_registers import Command, CommandRegisters
from ur_emulator.controller.host import Host
from ur_emulator.mechanics.kinematics import NoSolutionError

FloatArray = NDArray[np.float64]

_JOINT_RANGE_RAD = 2 * np.pi + 1e-9


class Queries:
    """Answers in the registers, in the cycle in which it is asked."""

    def __init__(self, host: Host, registers: CommandRegisters) -> None:
        self._host = host
        self._registers = registers

    def table(self) -> dict[int, Callable[[], None]]:
        """What each command number does."""
        host, registers, vector = self._host, self._registers, self._registers.vector
        return {
            Command.SET_PAYLOAD: self._set_payload,
            Command.SET_GRAVITY: lambda: None,
            Command.ZERO_FT_SENSOR: host.zero_force,
            Command.SET_TCP: lambda: setattr(
                host.target, "flange_from_tcp", frames.matrix_of(vector())
            ),
            Command.TCP_OFFSET: lambda: self._answer_pose(host.target.flange_from_tcp),
            Command.IS_POSE_WITHIN_LIMITS: lambda: registers.answer_int(
                host.is_pose_safe(frames.matrix_of(vector()))
            ),
            Command.ARE_JOINTS_WITHIN_LIMITS: lambda: registers.answer_int(
                bool(np.all(np.abs(vector()) <= self._joint_limits()))
            ),
            Command.POSE_TRANS: lambda: self._answer_pose(
                frames.matrix_of(vector()) @ frames.matrix_of(vector(6))
            ),
            Command.FORWARD_KINEMATICS_HERE: lambda: self._answer_pose(
                host.target.kinematics.base_from_tcp(
                    host.measured_joints(), host.target.flange_from_tcp
                )
            ),
            Command.FORWARD_KINEMATICS: lambda: self._answer_pose(
                host.target.kinematics.base_from_tcp(vector(), frames.matrix_of(vector(6)))
            ),
            Command.FLANGE_POSE: lambda: self._answer_pose(
                host.target.kinematics.base_from_tcp(host.measured_joints(), np.eye(4))
            ),
            Command.JOINT_TORQUES: lambda: registers.answer_vector(np.zeros(6)),
            Command.INVERSE_KINEMATICS: lambda: self._answer_inverse(host.target.joints_rad),
            Command.INVERSE_KINEMATICS_NEAR: lambda: self._answer_inverse(vector(6)),
            Command.HAS_INVERSE_KINEMATICS: lambda: self._answer_has_inverse(
                host.target.joints_rad
            ),
            Command.HAS_INVERSE_KINEMATICS_NEAR: lambda: self._answer_has_inverse(vector(6)),
        }

    def _joint_limits(self) -> FloatArray:
        return np.minimum(_JOINT_RANGE_RAD, self._host.profile.joint_limits_rad)

    def _answer_pose(self, matrix: FloatArray) -> None:
        self._registers.answer_vector(frames.pose_of(matrix))

    def _answer_inverse(self, near_rad: FloatArray) -> None:
        pose, target = frames.matrix_of(self._registers.vector()), self._host.target
        self._registers.answer_vector(
            target.kinematics.solve(pose, target.flange_from_tcp, near_rad)
        )

    def _answer_has_inverse(self, near_rad: FloatArray) -> None:
        try:
            self._answer_inverse(near_rad)
        except NoSolutionError:
            self._registers.answer_int(0)
        else:
            self._registers.answer_int(1)

    def _set_payload(self) -> None:
        self._host.payload_kg = self._registers.argument(0)
        self._host.payload_cog_m = self._registers.vector(1, 3)
