# SPDX-License-Identifier: MIT
"""The fixed sequence: what each step does, and the most that it can move. Data only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from equi_core.motion.arm_models import ARM_MODELS

SERVO_LOOKAHEAD_S = 0.1
SERVO_GAIN = 300.0
"""The conservative servo settings of a CB3."""
RAMP_SPEED_RAD_S = 0.2
RAMP_EASE_S = 0.3
"""A ramp speeds up, and slows down, within this time."""
RAMP_CRUISE_S = 0.8
RETURN_SPEED_RAD_S = 0.15
SINE_AMPLITUDE_RAD = 0.03
SINE_HZ = 1.0
SINE_PERIODS = 5
SLIDER_FRACTIONS = (1.0, 0.5, 0.2)
"""The first one is what the others are compared with."""
STOP_REPEATS = 3
MOVED_JOINT = 0
"""The base joint: the whole arm turns about the vertical, nothing goes up or down."""
RAMP_TRAVEL_RAD = RAMP_SPEED_RAD_S * (RAMP_CRUISE_S + RAMP_EASE_S)
_STOPPING_RAD = 0.08
"""What a stop may add at this speed before it counts as an anomaly."""
LONGEST_TRAVEL_RAD = RAMP_TRAVEL_RAD + _STOPPING_RAD
_TOOL_M = 0.25
"""Longest gripper that the bounds allow for."""
_BULK_M = 0.1
"""Half the width of links and gripper."""
SINE_SPEED_RAD_S = SINE_AMPLITUDE_RAD * 2 * math.pi * SINE_HZ


@dataclass(frozen=True)
class Step:
    """One step of the sequence; nothing of it happens before it is confirmed."""

    key: str
    title: str
    does: str
    speed_rad_s: float = 0.0
    """Largest speed of the base joint."""
    travel_rad: float = 0.0
    """Largest distance of the base joint from where the step begins."""
    fingers: bool = False

    @property
    def moves(self) -> bool:
        """Whether arm or fingers move."""
        return self.travel_rad > 0.0 or self.fingers

    def bounds(self, reach_m: float) -> str:
        """The largest motion, for an arm that reaches out to `reach_m` from its base's axis."""
        if self.fingers:
            return "the fingers run through their whole stroke; the arm stands still"
        if not self.moves:
            return "nothing moves"
        return (
            f"base joint at most {self.speed_rad_s:.2f} rad/s and {self.travel_rad:.2f} rad from "
            f"its start: at most {1e3 * self.speed_rad_s * reach_m:.0f} mm/s and "
            f"{1e3 * self.travel_rad * reach_m:.0f} mm at {reach_m:.2f} m from the base's axis"
        )


def reach_m(model: str, tcp_radius_m: float | None = None) -> float:
    """How far from the base's axis any point of arm and gripper can be [m].

    Args:
        model: of `ARM_MODELS`; an unknown one counts as the largest.
        tcp_radius_m: of the TCP, where the arm stands; stretched out if not given.
    """
    known = [arm for arm in ARM_MODELS.values() if arm.name == model] or list(ARM_MODELS.values())
    stretched_m = max(sum(abs(length) for length in arm.links_m) for arm in known) + _TOOL_M
    if tcp_radius_m is None:
        return stretched_m
    # The elbow may be further out than the gripper.
    elbow_m = max(abs(arm.links_m[1]) + abs(arm.links_m[3]) for arm in known)
    return min(stretched_m, max(tcp_radius_m, elbow_m) + _BULK_M)


def sequence(*, with_gripper: bool, with_protective_stop: bool) -> tuple[Step, ...]:
    """All steps in their order."""
    ramp = (RAMP_SPEED_RAD_S, LONGEST_TRAVEL_RAD)
    percents = ", ".join(f"{100 * fraction:.0f}" for fraction in SLIDER_FRACTIONS)
    steps = [
        Step("jitter", "RTDE timing", "listens to the controller for 5 s"),
        Step("force", "force at rest", "reads the estimated TCP force for 3 s; touch nothing"),
    ]
    if with_gripper:
        steps.append(
            Step(
                "gripper",
                "gripper timing",
                "resets and activates the gripper (it drops what it holds), then closes and opens "
                "it twice; nothing may be between the fingers",
                fingers=True,
            )
        )
    steps += [
        Step("start", "start of the program", "uploads ur_rtde's control program three times"),
        Step(
            "tracking",
            "tracking lag",
            f"turns the base by a sine of {SINE_AMPLITUDE_RAD} rad at {SINE_HZ} Hz, streamed",
            SINE_SPEED_RAD_S,
            2 * SINE_AMPLITUDE_RAD,
        ),
        Step(
            "slider",
            "speed slider",
            f"sets the speed slider to {percents} %, and at each turns the base once streamed and "
            "once as a move; then puts the slider back",
            *ramp,
        ),
        Step(
            "servo_stop",
            "stop of the stream (hold)",
            f"turns the base, and stops it by servoStop, {STOP_REPEATS} times",
            *ramp,
        ),
        Step(
            "program_end",
            "stop of the program",
            f"turns the base, and ends the program by the dashboard's stop, {STOP_REPEATS} times",
            *ramp,
        ),
        Step(
            "connection_closed",
            "loss of the connection",
            "turns the base from a process of its own and kills that process: the controller's "
            "watchdog must stop the arm",
            *ramp,
        ),
    ]
    if with_protective_stop:
        steps.append(
            Step(
                "protective_stop",
                "protective stop",
                "turns the base, triggers a protective stop, and unlocks it by the dashboard as "
                "soon as the controller allows it",
                *ramp,
            )
        )
    return tuple(steps)
