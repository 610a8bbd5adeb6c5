# SPDX-License-Identifier: MIT
"""The commanded pose from take-over on: trajectory, guard, and uprighting of a tilted tool."""

from __future__ import annotations

import logging
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from equi_control.rtde.robot_reading import Reading
from equi_control.servo.config import ServoConfig
from equi_core.geometry import tilt_of, top_down_pose, wrap_angle_rad, yaw_of
from equi_core.motion.blocked_step import BACK_OFF_M, blocked_step
from equi_core.motion.joint_limits import configuration_problem, unwound_yaw
from equi_core.motion.safety import GuardedSetpoint, guard_setpoint
from equi_core.motion.trajectory import TrajectoryGenerator

FloatArray = NDArray[np.float64]

_LOG = logging.getLogger(__name__)

_UPRIGHTING_RATE_RAD_S = 0.1
# Uprighting that is stopped, or goes on, changes its pace from full to none within this time.
_PACE_CHANGE_S = 0.2


class TakeOverError(Exception):
    """The arm is in a pose from which it must not be driven; says what to do."""


class Streamer:
    """One take-over: starts at the measured pose, advances by one cycle at a time."""

    def __init__(self, reading: Reading, config: ServoConfig, period_s: float) -> None:
        limits = config.limits
        pose = config.link.geometry.to_task(reading.base_link_from_tcp)
        tilt_rad = float(tilt_of(pose))
        if tilt_rad > config.max_tilt_rad:
            raise TakeOverError(
                f"the tool is tilted by {tilt_rad:.2f} rad, at most {config.max_tilt_rad} is "
                "allowed; jog it to point straight down"
            )
        position = pose[:3, 3]
        inside = np.clip(position, limits.workspace.lower_m, limits.workspace.upper_m)
        outside_m = float(np.linalg.norm(position - inside))
        if outside_m > limits.max_outside_m:
            raise TakeOverError(
                f"the TCP at {np.round(position, 3).tolist()} m is {outside_m:.3f} m outside the "
                f"workspace, at most {limits.max_outside_m} is allowed; jog it back"
            )
        problem = configuration_problem(
            reading.joints_rad,
            reading.base_link_from_tcp,
            config.link.geometry,
            config.joint_limits,
        )
        if problem:
            raise TakeOverError(problem)
        self._limits, self._period_s, self._config = limits, period_s, config
        # Counts the turns of the wrist, so that the range of yaw is a range of wrist 3.
        yaw = unwound_yaw(pose, reading.joints_rad, config.link.geometry)
        upright = top_down_pose(position, yaw)
        self._residual = Rotation.from_matrix(upright[:3, :3].T @ pose[:3, :3]).as_rotvec()
        self._uprighting_s = float(np.linalg.norm(self._residual)) / _UPRIGHTING_RATE_RAD_S * 1.6
        self._time_s = 0.0
        self._pace = 1.0
        self._held = False
        self.trajectory = TrajectoryGenerator(limits, period_s, [*position, yaw])
        self.commanded = np.array([*position, yaw])
        self._good = self.trajectory.state
        self._from = self._to = self.commanded.copy()
        self._speed_share = 1.0
        self._cap_share = 1.0
        self.pose = pose.copy()
        """task_from_tcp (4, 4) to be sent in this cycle."""
        self.guard_trips = 0

    @property
    def finished(self) -> bool:
        """Whether the arm is commanded to rest.

        The target is reached and the tool is upright, or everything has been stopped on the way.
        """
        upright = self._time_s >= self._uprighting_s
        return self.trajectory.finished and (upright or (self._held and self._pace == 0.0))

    def set_target(self, target: ArrayLike) -> None:
        """Move to a pose (4,): x, y, z [m], yaw [rad] in the task frame, with the tool upright."""
        self._held = False
        self._from = self.commanded.copy()
        pose = np.asarray(target, dtype=np.float64)
        self._to = pose
        self._cap_share = self._share_for_contact(pose)
        self.trajectory.set_speed_share(self._cap_share * self._speed_share)
        self.trajectory.retarget(pose)

    def set_speed_share(self, share: float) -> None:
        """Command as slowly as the controller moves: `share` (0, 1] of the speed.

        Else the commanded pose would run ahead of the arm.
        """
        self._speed_share = share
        self.trajectory.set_speed_share(self._cap_share * share)

    def _share_for_contact(self, target: FloatArray) -> float:
        """Share of the speed cap for a way on which the arm may meet something rigid."""
        contact = self._config.contact_limits
        length = float(np.linalg.norm(target[:3] - self.commanded[:3]))
        is_step = length <= math.sqrt(3.0) * self._limits.max_step_m + 1e-6
        if not is_step and not contact.near_surface(self.commanded[:3], target[:3]):
            return 1.0
        speed_m_s = contact.speed_of_step(self.commanded[:3], target[:3])
        return min(1.0, speed_m_s / self._limits.max_speed_m_s)

    def decelerate(self) -> None:
        """Stop on the way, within the caps, uprighting included; the next target ends that."""
        self._held = True
        self.trajectory.stop()

    def advance(self) -> None:
        """Compute `pose` for the next cycle."""
        state = self.trajectory.step()
        guarded = guard_setpoint(
            state.position[:3],
            float(state.position[3]),
            self.commanded[:3],
            float(self.commanded[3]),
            self._period_s,
            self._limits,
        )
        if guarded.issues:
            self.guard_trips += 1
            _LOG.error("set-point refused: %s", guarded.issues[0].message)
            guarded = self._braking()
        self._good = self.trajectory.state
        self.commanded = np.array([*guarded.position_m, guarded.yaw_rad])
        pose = top_down_pose(guarded.position_m, guarded.yaw_rad)
        change = self._period_s / _PACE_CHANGE_S
        self._pace = min(max(self._pace + (-change if self._held else change), 0.0), 1.0)
        self._time_s += self._pace * self._period_s
        if self._time_s < self._uprighting_s:
            # From the measured tilt to none, starting and ending at rest.
            share = (1.0 + math.cos(math.pi * self._time_s / self._uprighting_s)) / 2
            pose[:3, :3] = pose[:3, :3] @ Rotation.from_rotvec(share * self._residual).as_matrix()
        self.pose = pose

    def _braking(self) -> GuardedSetpoint:
        """The first set-point of a stop within the caps, from the last good commanded state.

        If there is none that stays in the box, the arm is commanded to stand at once.
        """
        if self.trajectory.brake_from(self._good):
            state = self.trajectory.step()
            guarded = guard_setpoint(
                state.position[:3],
                float(state.position[3]),
                self.commanded[:3],
                float(self.commanded[3]),
                self._period_s,
                self._limits,
            )
            if not guarded.issues:
                return guarded
        self.trajectory.restart(self.commanded)
        return GuardedSetpoint(self.commanded[:3], float(self.commanded[3]), ())

    def resume_from_rest(self) -> None:
        """Go on to the same target, but speed up from rest: the stream had paused."""
        self.trajectory.resume_from_rest()

    def settle_at(self, measured: FloatArray) -> None:
        """Give up the target and go, within the caps, to where the arm is."""
        self._held = False
        self.trajectory.retarget([*measured[:3, 3], self._unwound(measured)])

    def restart_at(self, measured: FloatArray) -> None:
        """The controller has braked the arm: begin anew, at rest, where it stands."""
        self.commanded = np.array([*measured[:3, 3], self._unwound(measured)])
        self.trajectory.restart(self.commanded)
        self._good = self.trajectory.state
        self.pose = measured.copy()

    def yield_to_contact(self, measured: FloatArray, back_off_m: float = BACK_OFF_M) -> None:
        """Give up the target and hold, a little back on the way, where the arm was stopped."""
        blocked = blocked_step(
            self._from, self._to, measured[:3, 3], self._unwound(measured), back_off_m
        )
        self._held = False
        self.trajectory.retarget(blocked.pose)

    def _unwound(self, pose: FloatArray) -> float:
        yaw = float(yaw_of(pose))
        return float(self.commanded[3]) + float(wrap_angle_rad(yaw - self.commanded[3]))
