# SPDX-License-Identifier: MIT
"""How the controller's target joints move: moves, servoing, speed commands and stops.

Each motion advances a `TargetState` by one controller cycle. The shapes are trapezoids and a
first-order servo lag: documented behaviour and guesses, not UR's own algorithms (the README's
conformance table says which is which).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from ur_emulator.mechanics.kinematics import Kinematics, NoSolutionError
from ur_emulator.mechanics.links import LINKS

FloatArray = NDArray[np.float64]

# A servo target further away than this is a mistake of the sender.
SERVO_JUMP_LIMIT_RAD = 0.6


class MotionRefusedError(Exception):
    """A motion that ends the program: out of reach, or a conflict of two motions."""


class JointSpeedError(Exception):
    """A servo target that the joints could only reach above their speed limit."""


@dataclass
class TargetState:
    """Where the controller wants the joints to be."""

    joints_rad: FloatArray
    speeds_rad_s: FloatArray = field(default_factory=lambda: np.zeros(6))
    flange_from_tcp: FloatArray = field(default_factory=lambda: np.eye(4))
    kinematics: Kinematics = field(default_factory=lambda: Kinematics(LINKS["ur5"]))

    def advance_to(self, joints_rad: FloatArray, period_s: float) -> None:
        """Set the next target; its speed follows by difference."""
        self.speeds_rad_s = (joints_rad - self.joints_rad) / period_s
        self.joints_rad = joints_rad

    def coast(self, speeds_rad_s: FloatArray, period_s: float) -> None:
        """Move on for one period at given joint speeds."""
        self.joints_rad = self.joints_rad + speeds_rad_s * period_s
        self.speeds_rad_s = speeds_rad_s

    def rest(self) -> None:
        """Stop where it is."""
        self.speeds_rad_s = np.zeros(6)

    def tcp(self) -> FloatArray:
        """base_from_tcp (4, 4) of the target joints."""
        return self.kinematics.base_from_tcp(self.joints_rad, self.flange_from_tcp)

    def jacobian(self) -> FloatArray:
        """Jacobian (6, 6) of the TCP at the target joints."""
        return self.kinematics.jacobian(self.joints_rad, self.flange_from_tcp)

    def solve(self, base_from_tcp: FloatArray) -> FloatArray:
        """Joints (6,) that bring the TCP to a pose, nearest to the target joints."""
        return self.kinematics.solve(base_from_tcp, self.flange_from_tcp, self.joints_rad)


class Motion(Protocol):
    """One running motion."""

    def advance(self, target: TargetState, period_s: float, speed_scale: float) -> bool:
        """Advance by one cycle; True when the motion has ended."""


class Trapezoid:
    """Path fraction of a move from rest to rest, with the speed slider stretching time."""

    def __init__(self, distance: float, speed: float, acceleration: float) -> None:
        self._distance = distance
        if distance < 1e-12 or speed <= 0 or acceleration <= 0:
            self.duration_s = 0.0
            return
        self._acceleration = acceleration
        self._speed = min(speed, math.sqrt(distance * acceleration))
        self._ramp_s = self._speed / acceleration
        self.duration_s = self._ramp_s + distance / self._speed

    def fraction(self, time_s: float) -> float:
        """Fraction of the path covered at a time [s]."""
        if time_s >= self.duration_s:
            return 1.0
        left_s = self.duration_s - time_s
        if time_s < self._ramp_s:
            path = self._acceleration * time_s**2 / 2
        elif left_s < self._ramp_s:
            path = self._distance - self._acceleration * left_s**2 / 2
        else:
            path = self._speed * (time_s - self._ramp_s / 2)
        return path / self._distance


class JointMove:
    """movej: every joint arrives together; the one with the longest path sets the duration."""

    def __init__(
        self, target: TargetState, goal_rad: FloatArray, speed: float, acceleration: float
    ) -> None:
        self._start, self._goal = target.joints_rad.copy(), goal_rad
        distance = float(np.abs(goal_rad - self._start).max())
        limit = float(target.kinematics.speed_limits_rad_s.min())
        self._profile = Trapezoid(distance, min(speed, limit), acceleration)
        self._time_s = 0.0

    def advance(self, target: TargetState, period_s: float, speed_scale: float) -> bool:
        """Advance by one cycle."""
        self._time_s += period_s * speed_scale
        fraction = self._profile.fraction(self._time_s)
        target.advance_to(self._start + fraction * (self._goal - self._start), period_s)
        return fraction >= 1.0


class LinearMove:
    """movel: the TCP goes straight and rotates evenly along the line."""

    def __init__(
        self, target: TargetState, goal: FloatArray, speed: float, acceleration: float
    ) -> None:
        start = target.tcp()
        self._start_m = start[:3, 3]
        self._displacement_m = goal[:3, 3] - self._start_m
        self._start_rotation = start[:3, :3]
        self._rotation = Rotation.from_matrix(self._start_rotation.T @ goal[:3, :3]).as_rotvec()
        # A pure rotation has no length: one radian takes as long as one metre.
        length = max(
            float(np.linalg.norm(self._displacement_m)), float(np.linalg.norm(self._rotation))
        )
        self._profile = Trapezoid(length, speed, acceleration)
        self._time_s = 0.0

    def advance(self, target: TargetState, period_s: float, speed_scale: float) -> bool:
        """Advance by one cycle; raises MotionRefusedError where the line leaves the reach."""
        self._time_s += period_s * speed_scale
        fraction = self._profile.fraction(self._time_s)
        pose = np.eye(4)
        pose[:3, 3] = self._start_m + fraction * self._displacement_m
        pose[:3, :3] = (
            self._start_rotation @ Rotation.from_rotvec(fraction * self._rotation).as_matrix()
        )
        try:
            joints = target.solve(pose)
        except NoSolutionError as error:
            raise MotionRefusedError(f"movel: {error}") from error
        target.advance_to(joints, period_s)
        return fraction >= 1.0


class Servo:
    """servoj: the target joints follow the newest command with a lag of the look-ahead time.

    A speed scale below 1 lets the controller's time pass more slowly: in each cycle the arm makes
    that share of the way, and no joint is faster than that share of its limit. A stream that knows
    the scale and goes at that share of its speed is followed; one that does not runs ahead, and the
    arm creeps after it when it ends, as is reported of real arms.
    """

    def __init__(self, lag_factor: float = 1.0, dead_time_s: float = 0.0) -> None:
        self._lag_factor, self._dead_time_s = lag_factor, dead_time_s
        self._waiting: deque[tuple[float, FloatArray]] = deque()
        self._commanded_rad: FloatArray | None = None
        self._lookahead_s = 0.1
        self._time_s = 0.0

    def set_target(self, joints_rad: FloatArray, lookahead_s: float) -> None:
        """Take a new servo target."""
        self._lookahead_s = max(lookahead_s, 0.03)
        if self._waiting and np.array_equal(self._waiting[-1][1], joints_rad):
            return
        self._waiting.append((self._time_s + self._dead_time_s, joints_rad))

    def advance(self, target: TargetState, period_s: float, speed_scale: float) -> bool:
        """Advance by one cycle; raises JointSpeedError on a jump. Never ends by itself."""
        self._time_s += period_s
        while self._waiting and self._waiting[0][0] <= self._time_s:
            self._commanded_rad = self._waiting.popleft()[1]
        if self._commanded_rad is None:
            return False
        error = self._commanded_rad - target.joints_rad
        largest = float(np.abs(error).max())
        if largest > SERVO_JUMP_LIMIT_RAD:
            raise JointSpeedError(f"servo target {largest:.2f} rad away from the joints")
        passed_s = speed_scale * period_s
        fraction = 1.0 - math.exp(-passed_s / (self._lookahead_s * self._lag_factor))
        limit = target.kinematics.speed_limits_rad_s * passed_s
        target.advance_to(target.joints_rad + np.clip(fraction * error, -limit, limit), period_s)
        return False


class JointSpeed:
    """speedj: joint speeds ramp to the newest command and stay there."""

    def __init__(self) -> None:
        self._commanded = np.zeros(6)
        self._acceleration = 1.0

    def set_target(self, speeds: FloatArray, acceleration: float) -> None:
        """Take a new speed target."""
        self._commanded, self._acceleration = speeds, acceleration

    def advance(self, target: TargetState, period_s: float, speed_scale: float) -> bool:
        """Advance by one cycle; never ends by itself."""
        limit = target.kinematics.speed_limits_rad_s
        wanted = speed_scale * np.clip(self._commanded, -limit, limit)
        target.coast(ramp(target.speeds_rad_s, wanted, self._acceleration * period_s), period_s)
        return False


class ToolSpeed:
    """speedl: the TCP's velocity ramps to the newest command and stays there."""

    def __init__(self, target: TargetState) -> None:
        # Starts from the velocity the TCP has, so that a change of mode does not jump.
        self._velocity = target.jacobian() @ target.speeds_rad_s
        self._commanded = np.zeros(6)
        self._acceleration = 0.25

    def set_target(self, velocity: FloatArray, acceleration: float) -> None:
        """Take a new velocity (6,): linear [m/s], angular [rad/s], in base."""
        self._commanded, self._acceleration = velocity, acceleration

    def advance(self, target: TargetState, period_s: float, speed_scale: float) -> bool:
        """Advance by one cycle; raises MotionRefusedError near a singularity."""
        wanted = speed_scale * self._commanded
        self._velocity = ramp(self._velocity, wanted, self._acceleration * period_s)
        if target.kinematics.is_singular(target.joints_rad):
            raise MotionRefusedError("speedl: the arm is too close to a singularity")
        speeds = np.linalg.solve(target.jacobian(), self._velocity)
        share = float(np.max(np.abs(speeds) / target.kinematics.speed_limits_rad_s))
        target.coast(speeds * min(1.0, 1.0 / max(share, 1e-9)), period_s)
        return False


class Stop:
    """stopj, stopl, servo and speed stops, and the controller's own deceleration.

    The joint speeds shrink together along a straight line in time, so the TCP keeps its path. The
    longest time any joint (or the TCP) needs at its deceleration sets the duration.
    """

    def __init__(
        self,
        target: TargetState,
        joint_deceleration: float | FloatArray | None = None,
        tool_deceleration: float | None = None,
    ) -> None:
        self._start = target.speeds_rad_s.copy()
        self._duration_s = 0.0
        if joint_deceleration is not None:
            self._duration_s = float(np.max(np.abs(self._start) / joint_deceleration))
        elif tool_deceleration is not None:
            velocity = target.jacobian() @ self._start
            self._duration_s = float(np.linalg.norm(velocity[:3])) / tool_deceleration
            # A tool that only rotates still has to stop.
            self._duration_s = max(self._duration_s, float(np.abs(self._start).max()) / 40.0)
        self._time_s = 0.0

    def advance(self, target: TargetState, period_s: float, speed_scale: float) -> bool:
        """Advance by one cycle; ends at rest."""
        del speed_scale
        self._time_s += period_s
        if self._time_s >= self._duration_s:
            target.rest()
            return True
        target.coast(self._start * (1.0 - self._time_s / self._duration_s), period_s)
        return False


class Path:
    """Several moves one after the other, each ending at rest (blends are not modelled)."""

    def __init__(self, makers: Sequence[Callable[[TargetState], Motion]]) -> None:
        self._makers = list(makers)
        self._current: Motion | None = None
        self.done_moves = 0

    def advance(self, target: TargetState, period_s: float, speed_scale: float) -> bool:
        """Advance by one cycle; ends with the last move."""
        if self._current is None:
            if self.done_moves >= len(self._makers):
                target.rest()
                return True
            self._current = self._makers[self.done_moves](target)
        if self._current.advance(target, period_s, speed_scale):
            self._current = None
            self.done_moves += 1
        return self._current is None and self.done_moves >= len(self._makers)


def ramp(value: FloatArray, goal: FloatArray, step: float) -> FloatArray:
    """`value` moved towards `goal` by at most `step` in length."""
    difference = goal - value
    length = float(np.linalg.norm(difference))
    return goal.copy() if length <= step else value + difference * (step / length)
