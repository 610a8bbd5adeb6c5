# SPDX-License-Identifier: MIT
"""What stops an arm besides its program: contact, limits of the installation, its own links."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ur_emulator.arms import Arm, lagged
from ur_emulator.controller.motions import TargetState
from ur_emulator.mechanics.collisions import LinkCollisions
from ur_emulator.mechanics.force_estimate import ForceEstimate
from ur_emulator.profile import Profile

FloatArray = NDArray[np.float64]

# Clearances and margins change by more than this in a motion, and by less in noise.
_CHANGE = 1e-6


class Reaction(enum.Enum):
    """How the controller stops the arm."""

    HALT = "protective stop on the spot"
    BRAKE = "protective stop with deceleration"
    VIOLATION = "safety violation"


@dataclass(frozen=True)
class Finding:
    """Something that stops the arm."""

    reaction: Reaction
    cause: str


class Supervision:
    """Looks at the arm once per cycle.

    Limits stop the arm while it moves further beyond them: an arm that already stands beyond one
    can be driven back.
    """

    def __init__(self, arm: Arm, profile: Profile) -> None:
        self._arm = arm
        self._profile = profile
        self._unhindered_rad = arm.joints_rad.copy()
        self._links = LinkCollisions(arm.kinematics, profile.table_z_m)
        self._margins: dict[str, float] = {}

    def reset(self) -> None:
        """The arm was put where it is, or stopped there."""
        self._unhindered_rad = self._arm.joints_rad.copy()

    def advance(self, target: TargetState, force: ForceEstimate, period_s: float) -> Finding | None:
        """One cycle; what stops the arm, if anything."""
        self._unhindered_rad = lagged(
            self._unhindered_rad, target.joints_rad, self._profile.joint_lag_s, period_s
        )
        return (
            self._contact(target, force)
            or self._safety_planes(target)
            or self._joint_limits(target)
            or self._link_collisions(target)
        )

    def _contact(self, target: TargetState, force: ForceEstimate) -> Finding | None:
        tcp, kinematics = target.flange_from_tcp, self._arm.kinematics
        goal_m = kinematics.base_from_tcp(self._unhindered_rad, tcp)[:3, 3]
        lag_m = goal_m - kinematics.base_from_tcp(self._arm.joints_rad, tcp)[:3, 3]
        force_n = float(np.linalg.norm(force.filtered[:3]))
        if float(np.linalg.norm(lag_m)) > self._profile.collision_lag_m:
            behind = ", ".join(f"{value * 1e3:.1f}" for value in lag_m)
            return Finding(Reaction.HALT, f"collision: the arm is ({behind}) mm from its target")
        if force_n > self._profile.force_limit_n:
            return Finding(Reaction.HALT, f"collision: {force_n:.0f} N at the TCP")
        return None

    def _safety_planes(self, target: TargetState) -> Finding | None:
        if not self._profile.safety_planes:
            return None
        tcp = self._arm.kinematics.base_from_tcp(self._arm.joints_rad, target.flange_from_tcp)
        for plane in self._profile.safety_planes:
            depth_m = float(np.dot(plane[:3], tcp[:3, 3])) + plane[3]
            if self._is_leaving(f"plane {plane}", depth_m):
                return Finding(
                    Reaction.VIOLATION,
                    f"TCP {-depth_m * 1e3:.1f} mm beyond the safety plane {plane}",
                )
        return None

    def _joint_limits(self, target: TargetState) -> Finding | None:
        del target
        for joint, limit in enumerate(self._profile.joint_limits_rad):
            angle = float(self._arm.joints_rad[joint])
            if self._is_leaving(f"joint {joint}", limit - abs(angle)):
                return Finding(
                    Reaction.BRAKE, f"joint {joint} at {angle:.3f} rad; its limit is {limit:.3f}"
                )
        return None

    def _link_collisions(self, target: TargetState) -> Finding | None:
        if not self._profile.link_collisions:
            return None
        frames = self._arm.kinematics.link_frames(self._arm.joints_rad)
        clearance_m, parts = self._links.nearest(frames, target.flange_from_tcp)
        if self._is_leaving("links", clearance_m):
            return Finding(Reaction.HALT, f"collision: {parts} meet")
        return None

    def _is_leaving(self, name: str, margin: float) -> bool:
        """Whether a margin is used up and shrinks on."""
        before = self._margins.get(name, margin)
        self._margins[name] = margin
        return margin < 0 and margin < before - _CHANGE
