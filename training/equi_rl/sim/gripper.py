# SPDX-License-Identifier: MIT
"""The simulated 2F-85: two fingers that close together, stop at what they meet, and say so.

`holding` is the status that the real gripper reports as gOBJ = 2: it was told to close, and contact
stopped it before it got there. It is true for anything between the fingers that resists, movable or
not, block or drawer handle, and turns false when the fingers reach the commanded opening, because
nothing was there or because it slipped out.
"""

from __future__ import annotations

import math

from equi_core.motion.ur5_kinematics import JOINT_NAMES
from equi_rl.sim.bullet import BulletClient, pybullet
from equi_rl.sim.errors import SimError
from equi_rl.sim.robot_model import MAX_OPENING_M

LEFT_FINGER = len(JOINT_NAMES)
RIGHT_FINGER = LEFT_FINGER + 1
_FINGERS = (LEFT_FINGER, RIGHT_FINGER)

DEFAULT_SPEED_M_S = 0.30
"""Speed of the gap. Twice the 2F-85's own, which shortens a step and changes no grasp."""
DEFAULT_FORCE_N = 20.0
"""The least force of the 2F-85; ample for light objects."""
HOLDING_STILL_FORCE_N = 235.0
"""What it takes to push fingers off the place where they were told to be: like the real gripper's
gears, ours yield to nothing that the arm can do."""
SPEED_RANGE_M_S = (0.020, 0.50)
FORCE_RANGE_N = (5.0, 235.0)

AT_TARGET_M = 0.0012
"""A gap this near to the commanded one counts as reached: about three counts of the 2F-85."""
# The fingers' reference runs ahead of the slower finger by at most this, which is what makes them
# squeeze: both fingers follow one reference, as the 2F-85's linkage makes them.
_LEAD_M = 0.002
_STALLED_LAG_M = 0.0015
_RESISTED_LAG_M = 0.0008
_STALLED_SPEED_M_S = 0.004
_POSITION_GAINS = (0.3, 0.3)
_VELOCITY_GAINS = (1.0, 1.0)


class GripperError(SimError, ValueError):
    """A gripper command outside what the 2F-85 takes."""


class Gripper:
    """Commanded gap, measured gap, and whether contact stopped the fingers."""

    def __init__(self, client: BulletClient, body_id: int) -> None:
        self._body = body_id
        self._states = client.getJointStates
        self._set_motors = client.setJointMotorControlArray
        self._reset_joint = client.resetJointState
        self._target_half_m = MAX_OPENING_M / 2
        self._reference_half_m = MAX_OPENING_M / 2
        self._speed_m_s = DEFAULT_SPEED_M_S
        self._force_n = DEFAULT_FORCE_N
        self._stalled = False
        self._resisted = False
        self._arrived = True
        self._opening_m = MAX_OPENING_M

    @property
    def holding(self) -> bool:
        """Told to close, stopped by contact before it got there."""
        closing = self._target_half_m < self._opening_m / 2 - AT_TARGET_M / 2
        return self._stalled and closing

    @property
    def resisted(self) -> bool:
        """Something holds the fingers back on their way."""
        return self._resisted and not self._arrived

    @property
    def opening(self) -> float:
        """Measured gap as a fraction of the full opening, as of the last update."""
        return min(1.0, max(0.0, self._opening_m / MAX_OPENING_M))

    def teleport(self, opening: float) -> None:
        """Put the fingers at rest at an opening in [0, 1]."""
        self.set_target(opening)
        half_m = self._target_half_m
        for finger in _FINGERS:
            self._reset_joint(self._body, finger, half_m, 0.0)
        self._reference_half_m = half_m
        self._opening_m = 2 * half_m
        self._stalled = False
        self._arrived = True
        self._command()

    def set_target(
        self,
        opening: float,
        speed_m_s: float = DEFAULT_SPEED_M_S,
        force_n: float = DEFAULT_FORCE_N,
    ) -> None:
        """Go to an opening in [0, 1] at a speed of the gap, squeezing with at most a force."""
        if not (math.isfinite(opening) and 0.0 <= opening <= 1.0):
            raise GripperError(f"opening {opening} must lie in [0, 1]: 0 closed, 1 open")
        for name, value, (low, high) in (
            ("speed_m_s", speed_m_s, SPEED_RANGE_M_S),
            ("force_n", force_n, FORCE_RANGE_N),
        ):
            if not low <= value <= high:
                raise GripperError(f"{name} = {value} must lie in [{low}, {high}]")
        target_half_m = opening * MAX_OPENING_M / 2
        if target_half_m != self._target_half_m:
            self._arrived = self._stalled = False
        self._target_half_m = target_half_m
        self._speed_m_s = speed_m_s
        self._force_n = force_n

    @property
    def settled(self) -> bool:
        """At the commanded opening, or stopped by contact."""
        return self._stalled or self._arrived

    def update(self, elapsed_s: float) -> None:
        """Read the fingers and lead them on; call it regularly while the simulation runs."""
        (left, left_speed, *_), (right, right_speed, *_) = self._states(self._body, _FINGERS)
        self._opening_m = left + right
        if self._arrived:
            return
        reference, target = self._reference_half_m, self._target_half_m
        advance = self._speed_m_s / 2 * elapsed_s
        if target <= reference:
            slower = max(left, right)
            lag = slower - reference
            self._reference_half_m = max(target, reference - advance, slower - _LEAD_M)
        else:
            slower = min(left, right)
            lag = reference - slower
            self._reference_half_m = min(target, reference + advance, slower + _LEAD_M)
        self._resisted = lag > _RESISTED_LAG_M
        slow = max(abs(left_speed), abs(right_speed)) < _STALLED_SPEED_M_S
        self._stalled = (self._stalled or slow) and lag > _STALLED_LAG_M
        if abs(self._opening_m / 2 - target) < AT_TARGET_M / 2:
            self._arrived, self._stalled = True, False
            self._reference_half_m = target
            self._command()
            return
        # Fingers that keep up get the reference's own speed to follow; squeezing ones do not.
        keeping_up = abs(self._reference_half_m - reference) > advance / 2
        self._command((self._reference_half_m - reference) / elapsed_s if keeping_up else 0.0)

    def _command(self, speed_m_s: float = 0.0) -> None:
        force_n = HOLDING_STILL_FORCE_N if self._arrived else self._force_n
        self._set_motors(
            self._body,
            _FINGERS,
            pybullet.POSITION_CONTROL,
            targetPositions=(self._reference_half_m, self._reference_half_m),
            targetVelocities=(speed_m_s, speed_m_s),
            forces=(force_n, force_n),
            positionGains=_POSITION_GAINS,
            velocityGains=_VELOCITY_GAINS,
        )
