# SPDX-License-Identifier: MIT
"""The arm behind `ArmMover`, through the driver's link to the controller.

Slow joint moves to planned poses, each refused by the controller's own safety limits if it leaves
them. The driver node must not run at the same time: a controller obeys one program. With
`listen_only` no program is loaded at all, and people guide the arm with the pendant's freedrive.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from equi_calibration.cell_file import CellSettings
from equi_calibration.collect.poses import path_is_clear
from equi_calibration.collect.sources import ArmReading
from equi_calibration.errors import CollectError
from equi_control.rtde import controller_program
from equi_control.rtde.dashboard import DashboardError
from equi_control.rtde.rtde_link import LinkConfig, LinkError, RtdeLink
from equi_core.motion import ur5_kinematics
from equi_core.motion.arm_models import UR5, ArmModel

FloatArray = NDArray[np.float64]

_UR5_REACH_M = 0.9
_OLDEST_READING_S = 0.5


class RtdeArm:
    """Context manager: connects without moving, stops the arm on the way out."""

    def __init__(self, cell: CellSettings, robot_ip: str, *, listen_only: bool = False) -> None:
        self._cell = cell
        self._listen_only = listen_only
        self._robot_ip = robot_ip
        self._link = RtdeLink(LinkConfig(robot_ip, cell.geometry, robot_model=cell.arm.name))

    def __enter__(self) -> RtdeArm:
        if self._listen_only:
            self._require_model()  # otherwise the link does, before it loads its program
        try:
            self._link.open(listen_only=self._listen_only)
        except LinkError as error:
            raise CollectError(f"the robot is not ready: {error}") from error
        return self

    def __exit__(self, *_: object) -> None:
        self._link.close()

    def _require_model(self) -> None:
        """Refuse another arm than the cell file's: its joints mean other poses."""
        try:
            found = controller_program.robot_model(self._robot_ip)
        except DashboardError as error:
            raise CollectError(f"which arm stands there is not known: {error}") from error
        if found != self._cell.arm.name:
            raise CollectError(
                f"wrong_model: the controller at {self._robot_ip} drives a {found}, but "
                f"link.robot_model is {self._cell.arm.name}; correct the cell file, or the address"
            )

    def now_s(self) -> float:
        """Wall clock, the one that stamps images."""
        return time.time()

    def read(self) -> ArmReading:
        """Newest state of the controller."""
        reading = self._link.read()
        if not reading.connected or reading.age_s > _OLDEST_READING_S:
            raise CollectError(
                f"the controller was last heard {reading.age_s:.1f} s ago; connection lost"
            )
        return ArmReading(
            reading.base_link_from_tcp, reading.joints_rad, time.time(), not reading.at_rest
        )

    def move_to(self, joints_rad: FloatArray, speed_m_s: float) -> None:
        """Go to a joint vector if the path is clear; over the ready posture if it is not."""
        target = np.asarray(joints_rad, dtype=np.float64)
        here = self.read().joints_rad
        for stop in self._path(here, target):
            self._move(stop, speed_m_s)

    def _path(self, here: FloatArray, target: FloatArray) -> list[FloatArray]:
        ready = np.asarray(ur5_kinematics.HOME_RAD)
        if path_is_clear(self._cell, here, target):
            return [target]
        # From wherever the arm was left: it may be outside the boxes of the tour already.
        if path_is_clear(self._cell, ready, target):
            return [ready, target]
        raise CollectError(
            "no clear path from here to the next pose; bring the arm to its ready posture "
            "(0, -90, 90, -90, -90, 0 deg) by hand, or widen collect.tcp_box in the cell file"
        )

    def _move(self, joints_rad: FloatArray, speed_m_s: float) -> None:
        speed = speed_m_s / farthest_reach_m(self._cell.arm)
        try:
            self._link.move_joints(joints_rad, speed, 2 * speed)
        except LinkError as error:
            raise CollectError(f"the arm did not reach the pose: {error}") from error

    def nudge(self, base_from_tcp: FloatArray, speed_m_s: float) -> None:
        """A small straight move, for measuring delays."""
        try:
            self._link.move_to(base_from_tcp, speed_m_s, 4 * speed_m_s)
        except LinkError as error:
            raise CollectError(f"the arm did not make its small move: {error}") from error


def farthest_reach_m(arm: ArmModel) -> float:
    """A joint speed of v / this keeps every point of the arm below v [m]."""
    lengths = [abs(model.links_m[1]) + abs(model.links_m[2]) for model in (arm, UR5)]
    return _UR5_REACH_M * lengths[0] / lengths[1]
