"""What the controller drives: a light kinematic arm, or the physics of the training world.

Both follow the controller's target joints and report measured joints, the force at the TCP and a
gripper. They know nothing of programs, ports or safety.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from equi_core.motion.ur5_kinematics import HOME_RAD

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

    @property
    def gripper(self) -> Gripper:
        """What the arm carries."""

    def follow(self, target_rad: FloatArray, target_speeds: FloatArray, period_s: float) -> None:
        """Let one controller period pass while the motors follow the target."""

    def place(self, joints_rad: FloatArray) -> None:
        """Put the arm somewhere at rest: a person moved it by hand."""

    def scene(self) -> dict[str, Any]:
        """What lies in the cell, as plain data; empty where there is no world."""

    def reset_scene(self, scene: dict[str, Any]) -> None:
        """Arrange the world anew; refused by an arm that has none."""

    def close(self) -> None:
        """Release what the arm holds."""


class SceneRefusedError(ValueError):
    """A scene that this arm cannot show; says why."""


class KinematicGripper:
    """Fingers that move at their speed and stop at a virtual object of some width."""

    def __init__(self) -> None:
        self.opening_m = GRIPPER_STROKE_M
        self.stopped_by_contact = False
        self.jammed = False
        self.object_width_m: float | None = None
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
        wanted = self.opening_m + step
        width = self.object_width_m
        # An object placed while the fingers are narrower than it is not between them.
        if width is not None and wanted < width <= self.opening_m:
            wanted = width
            self.stopped_by_contact = True
        self.opening_m = wanted


class KinematicArm:
    """Joints that lag their targets a little; no masses, no contacts. For protocol tests."""

    LAG_S = 0.012

    def __init__(self) -> None:
        self.joints_rad = np.array(HOME_RAD)
        self.speeds_rad_s = np.zeros(6)
        self.gripper = KinematicGripper()

    def follow(self, target_rad: FloatArray, target_speeds: FloatArray, period_s: float) -> None:
        """First-order lag behind the target."""
        del target_speeds
        share = 1.0 - math.exp(-period_s / self.LAG_S)
        moved = self.joints_rad + share * (target_rad - self.joints_rad)
        # Settle exactly, so that "at rest" is a fact and not a limit.
        moved = np.where(np.abs(target_rad - moved) < 1e-9, target_rad, moved)
        self.speeds_rad_s = (moved - self.joints_rad) / period_s
        self.joints_rad = moved
        self.gripper.advance(period_s)

    def place(self, joints_rad: FloatArray) -> None:
        """Move by hand."""
        self.joints_rad = np.array(joints_rad, dtype=np.float64)
        self.speeds_rad_s = np.zeros(6)

    def scene(self) -> dict[str, Any]:
        """There is nothing but the arm."""
        return {}

    def reset_scene(self, scene: dict[str, Any]) -> None:
        """Refused: there is no world."""
        raise SceneRefusedError("the kinematic arm has no world; start with --arm physics")

    def close(self) -> None:
        """Nothing to release."""
