# SPDX-License-Identifier: MIT
"""What the controller drives: the interface of an arm, and a light kinematic one.

An arm follows the controller's target joints and reports measured joints and a gripper. It knows
nothing of programs, ports or safety. Other packages add arms (entry points `ur_emulator.arms`).
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ur_emulator.mechanics import contact
from ur_emulator.mechanics.kinematics import HOME_RAD, Kinematics
from ur_emulator.profile import LENIENT, Profile

FloatArray = NDArray[np.float64]

GRIPPER_STROKE_M = 0.085


class Gripper(Protocol):
    """The mechanics of a two-finger gripper."""

    jammed: bool
    """Injected fault: the fingers cannot move."""

    @property
    def opening_m(self) -> float:
        """Measured gap between the pads."""

    @property
    def stopped_by_contact(self) -> bool:
        """Whether the fingers were stopped before they reached the commanded gap."""

    def command(self, opening_m: float, speed_m_s: float, force_n: float) -> None:
        """Go to a gap."""

    def lose_object(self) -> None:
        """Injected fault: what is between the fingers slips out."""


class Arm(Protocol):
    """A six-joint arm that follows target joints."""

    joints_rad: FloatArray
    speeds_rad_s: FloatArray
    kinematics: Kinematics
    flange_from_tcp: FloatArray
    """The tool (4, 4) that touches things first; the controller keeps it up to date."""
    contact_wrench: FloatArray
    """Force [N] and torque [Nm] (6,) of the surroundings on the tool at the TCP, in base."""
    obstacles: tuple[contact.Obstacle, ...]
    """Rigid obstacles that were added by hand."""

    @property
    def gripper(self) -> Gripper:
        """What the arm carries."""

    def follow(self, target_rad: FloatArray, target_speeds: FloatArray, period_s: float) -> None:
        """Let one controller period pass while the motors follow the target."""

    def place(self, joints_rad: FloatArray) -> None:
        """Put the arm somewhere at rest: a person moved it in freedrive."""

    def scene(self) -> dict[str, Any]:
        """What lies in the cell, as plain data; empty where there is no scene."""

    def reset_scene(self, scene: dict[str, Any]) -> None:
        """Replace the scene; refused by an arm that has none."""

    def close(self) -> None:
        """Release what the arm holds."""


class SceneRefusedError(ValueError):
    """A scene that this arm cannot set up; says why."""


class KinematicGripper:
    """Fingers that move at their speed and stop at a virtual object of some width."""

    def __init__(self) -> None:
        self.opening_m = GRIPPER_STROKE_M
        self.stopped_by_contact = False
        self.jammed = False
        self.object_width_m: float | None = None
        self.wall_gap_m: float | None = None
        """Between walls this far apart the fingers open no further."""
        self._target_m = GRIPPER_STROKE_M
        self._speed_m_s = 0.15

    def command(self, opening_m: float, speed_m_s: float, force_n: float) -> None:
        """Go to a gap; force has no meaning without physics."""
        del force_n
        self._target_m, self._speed_m_s = opening_m, speed_m_s
        self.stopped_by_contact = False

    def lose_object(self) -> None:
        """The virtual object vanishes."""
        self.object_width_m = None
        self.stopped_by_contact = False

    def advance(self, period_s: float) -> None:
        """Move the fingers for one period."""
        remaining = self._target_m - self.opening_m
        if self.jammed:
            self.stopped_by_contact = abs(remaining) > 1e-4
            return
        step = math.copysign(min(abs(remaining), self._speed_m_s * period_s), remaining)
        opening_m = self.opening_m + step
        width = self.object_width_m
        # An object placed while the fingers are narrower than it is not between them.
        if width is not None and opening_m < width <= self.opening_m:
            opening_m = width
            self.stopped_by_contact = True
        # Walls that are put where the fingers are already do not move them.
        gap = self.wall_gap_m
        if gap is not None and step > 0.0 and opening_m > gap:
            opening_m = max(self.opening_m, gap)
            self.stopped_by_contact = True
        self.opening_m = opening_m


class KinematicArm:
    """Joints that lag their targets a little; stiff, without masses. For tests without physics.

    With a stiffness in its profile the tool's TCP is held back by obstacles and by the table.
    """

    def __init__(self, kinematics: Kinematics, profile: Profile = LENIENT) -> None:
        self.kinematics = kinematics
        self.joints_rad = np.array(HOME_RAD)
        self.speeds_rad_s = np.zeros(6)
        self.gripper = KinematicGripper()
        self.flange_from_tcp = np.eye(4)
        self.contact_wrench = np.zeros(6)
        self.obstacles: tuple[contact.Obstacle, ...] = ()
        self._table = (contact.table(profile.table_z_m),) if profile.table_contact else ()
        self._lag_s = profile.joint_lag_s
        self._stiffness_n_m = profile.arm_stiffness_n_m
        self._free_rad = self.joints_rad.copy()

    def follow(self, target_rad: FloatArray, target_speeds: FloatArray, period_s: float) -> None:
        """First-order lag behind the target, and the displacement by what the tool touches."""
        del target_speeds
        self._free_rad = lagged(self._free_rad, target_rad, self._lag_s, period_s)
        moved = self._held_back()
        self.speeds_rad_s = (moved - self.joints_rad) / period_s
        self.joints_rad = moved
        self.gripper.advance(period_s)

    def _held_back(self) -> FloatArray:
        self.contact_wrench = np.zeros(6)
        obstacles = self.obstacles + self._table
        if self._stiffness_n_m <= 0 or not obstacles:
            return self._free_rad
        tcp_m = self.kinematics.base_from_tcp(self._free_rad, self.flange_from_tcp)[:3, 3]
        displacement_m, force_n = contact.resist(tcp_m, obstacles, self._stiffness_n_m)
        if not displacement_m.any():
            return self._free_rad
        self.contact_wrench[:3] = force_n
        jacobian = self.kinematics.jacobian(self._free_rad, self.flange_from_tcp)
        # Damped: near a singularity the joints cannot give way in every direction.
        damped = jacobian @ jacobian.T + 1e-6 * np.eye(6)
        twist = np.concatenate([displacement_m, np.zeros(3)])
        return self._free_rad + jacobian.T @ np.linalg.solve(damped, twist)

    def place(self, joints_rad: FloatArray) -> None:
        """Set joints, at rest."""
        self.joints_rad = np.array(joints_rad, dtype=np.float64)
        self._free_rad = self.joints_rad.copy()
        self.speeds_rad_s = np.zeros(6)

    def scene(self) -> dict[str, Any]:
        """Empty: there is nothing but the arm."""
        return {}

    def reset_scene(self, scene: dict[str, Any]) -> None:
        """Refused: there is no scene."""
        raise SceneRefusedError("the kinematic arm has no scene; start with --arm physics")

    def close(self) -> None:
        """Nothing to release."""


def lagged(
    joints_rad: FloatArray, target_rad: FloatArray, lag_s: float, period_s: float
) -> FloatArray:
    """Joints one period later that follow a target with a first-order lag."""
    fraction = 1.0 if lag_s <= 0 else 1.0 - math.exp(-period_s / lag_s)
    moved = joints_rad + fraction * (target_rad - joints_rad)
    # Settle exactly: a first-order lag alone would never be at rest.
    return np.where(np.abs(target_rad - moved) < 1e-9, target_rad, moved)
