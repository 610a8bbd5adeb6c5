# SPDX-License-Identifier: MIT
"""The driver's states, faults and what may follow what: plain data and one pure function."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from equi_control.rtde.robot_reading import ADVICE, Problem


class DriverState(enum.IntEnum):
    """What the driver is doing; the numbers are those of the ROS message."""

    IDLE = 0
    ACTIVE = 1
    HOLD = 2
    FAULT = 3
    PAUSED = 4


class FaultCode(enum.IntEnum):
    """Why a fault is latched; the numbers are those of the ROS message."""

    NONE = 0
    CONNECTION_LOST = 1
    PROTECTIVE_STOP = 2
    EMERGENCY_STOP = 3
    ROBOT_NOT_RUNNING = 4
    SERVO_FAILED = 5
    WATCHDOG = 6
    LIMIT_VIOLATED = 7
    GRIPPER = 8
    INTERNAL = 255


class Event(enum.Enum):
    """What can happen to the driver."""

    TAKEN_OVER = "the servo process holds the arm"
    MOTION_STARTED = "a step or the way home began"
    MOTION_ENDED = "the arm rests at its target"
    PAUSED = "an operator holds the arm"
    RESUMED = "the operator lets it go on"
    RELEASED = "an operator released the arm"
    FAILED = "something went wrong"
    RESET = "an operator reset the fault and the robot is ready"


class TransitionError(RuntimeError):
    """An event that cannot happen in a state: a defect of the caller."""


_NEXT = {
    (DriverState.IDLE, Event.TAKEN_OVER): DriverState.HOLD,
    (DriverState.IDLE, Event.RELEASED): DriverState.IDLE,
    (DriverState.HOLD, Event.MOTION_STARTED): DriverState.ACTIVE,
    (DriverState.HOLD, Event.RELEASED): DriverState.IDLE,
    (DriverState.ACTIVE, Event.MOTION_STARTED): DriverState.ACTIVE,
    (DriverState.ACTIVE, Event.MOTION_ENDED): DriverState.HOLD,
    (DriverState.ACTIVE, Event.RELEASED): DriverState.IDLE,
    (DriverState.HOLD, Event.PAUSED): DriverState.PAUSED,
    (DriverState.ACTIVE, Event.PAUSED): DriverState.PAUSED,
    (DriverState.PAUSED, Event.PAUSED): DriverState.PAUSED,
    (DriverState.PAUSED, Event.RESUMED): DriverState.HOLD,
    (DriverState.PAUSED, Event.RELEASED): DriverState.IDLE,
    (DriverState.FAULT, Event.RESET): DriverState.IDLE,
}


def next_state(state: DriverState, event: Event) -> DriverState:
    """The state after an event; a fault is reached from anywhere and left only by a reset."""
    if event is Event.FAILED:
        return DriverState.FAULT
    try:
        return _NEXT[state, event]
    except KeyError as error:
        raise TransitionError(f"{event.name} cannot happen in state {state.name}") from error


@dataclass(frozen=True)
class Fault:
    """A latched fault in words."""

    code: FaultCode
    reason: str
    operator_action: str


_CODE_OF_PROBLEM = {
    Problem.CONNECTION_LOST.value: FaultCode.CONNECTION_LOST,
    Problem.PROTECTIVE_STOP.value: FaultCode.PROTECTIVE_STOP,
    Problem.EMERGENCY_STOP.value: FaultCode.EMERGENCY_STOP,
    Problem.ROBOT_NOT_RUNNING.value: FaultCode.ROBOT_NOT_RUNNING,
    Problem.PROGRAM_STOPPED.value: FaultCode.ROBOT_NOT_RUNNING,
    Problem.DRIVER_SILENT.value: FaultCode.WATCHDOG,
    "watchdog": FaultCode.WATCHDOG,
}

_ACTION = {
    FaultCode.SERVO_FAILED: "read the log, then call reset_fault",
    FaultCode.WATCHDOG: "free the computer of other load, then call reset_fault",
    FaultCode.LIMIT_VIOLATED: "look at arm and calibration, then call reset_fault",
    FaultCode.GRIPPER: "check the gripper's light, power and cable, then call reset_fault",
    FaultCode.INTERNAL: "read the log and report it, then call reset_fault",
}


def reset_refusal(
    latched: Fault | None, fault_count: int, acknowledged: FaultCode, acknowledged_count: int
) -> str:
    """Why an acknowledgement does not reset what is latched; empty if it does.

    Args:
        latched: the latched fault; None: none is.
        fault_count: its number, counted since the driver started.
        acknowledged: code of the fault that an operator has looked at.
        acknowledged_count: number of that fault, as the safety status showed it.
    """
    if latched is None:
        return "no fault is latched"
    now = f"{latched.code.name}: {latched.reason}"
    if acknowledged is not latched.code:
        return (
            f"{acknowledged.name} was acknowledged, but {now} is latched; "
            f"look at the robot again: {latched.operator_action}"
        )
    if acknowledged_count != fault_count:
        return (
            f"fault_count {acknowledged_count} was acknowledged, but {fault_count} is latched "
            f"({now}); read safety_status and look at the robot again: {latched.operator_action}"
        )
    return ""


def fault_of_problem(problem: str, message: str) -> Fault:
    """The fault for a problem code that the servo process published."""
    code = _CODE_OF_PROBLEM.get(problem, FaultCode.INTERNAL)
    known = {item.value: item for item in Problem}
    action = ADVICE[known[problem]] if problem in known else _ACTION[code]
    reason = message if message.startswith(problem) else f"{problem}: {message or 'no details'}"
    return Fault(code, reason, action)


def fault_of_code(code: FaultCode, reason: str) -> Fault:
    """A fault that the driver itself has found."""
    default = "clear the cause, then call reset_fault"
    return Fault(code, f"{code.name.lower()}: {reason}", _ACTION.get(code, default))
