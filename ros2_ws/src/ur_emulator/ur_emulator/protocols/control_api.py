# SPDX-License-Identifier: MIT
"""Control API (29100 by default): faults, freedrive, recorder, scene. Not a port of the robot's.

One JSON object per line in, one per line out: `{"op": "protective_stop"}` is answered by
`{"ok": true, ...}` or `{"ok": false, "error": "..."}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ur_emulator.client import RequestError
from ur_emulator.constants import Service
from ur_emulator.controller import frames
from ur_emulator.lines import LineReader
from ur_emulator.protocols.connections import Connection
from ur_emulator.protocols.pendant import Pendant
from ur_emulator.protocols.pendant import checked_number as _number

# A scene with many objects is long; nothing else is.
_MAX_REQUEST_BYTES = 4_000_000


class Robot(Protocol):
    """What the control API can do to an emulated robot."""

    controller: Any
    network: Any
    robotiq: Any

    def restart(self, boot_s: float | None) -> None:
        """Power-cycle the controller."""

    def statistics(self) -> dict[str, Any]:
        """How well the loop keeps its period."""

    def request_shutdown(self) -> None:
        """End the process."""


class ControlSession:
    """One client of the control API."""

    def __init__(self, connection: Connection, robot: Robot) -> None:
        self._connection = connection
        self._robot = robot
        self._reader = LineReader(_MAX_REQUEST_BYTES)
        self._operations = self._operation_table()

    def received(self, data: bytes) -> None:
        """Carry out every complete line."""
        for line in self._reader.feed(data):
            if line.strip():
                answer = json.dumps(self._carry_out(line))
                self._connection.send(answer.encode() + b"\n")

    def closed(self) -> None:
        """Faults stay until they are cleared: the client may be a one-line script."""

    def _carry_out(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise RequestError(f"request is {request!r}; it must be a JSON object")
            name = request.pop("op", None)
            if name not in self._operations:
                known = ", ".join(sorted(self._operations))
                raise RequestError(f"op is {name!r}; known: {known}")
            result = self._operations[name](**request)
        except (TypeError, ValueError, LookupError, AttributeError, OSError) as error:
            return _refusal(error)
        except (ArithmeticError, RecursionError) as error:  # huge numbers, deep nesting
            return _refusal(error)
        return {"ok": True, **(result or {})}

    def _operation_table(self) -> dict[str, Callable[..., dict[str, Any] | None]]:
        robot = self._robot
        return {
            "status": self._status,
            "protective_stop": lambda: robot.controller.trigger_protective_stop("injected"),
            "emergency_stop": lambda: robot.controller.emergency_stop(),
            "release_emergency_stop": lambda: {
                "released": robot.controller.release_emergency_stop()
            },
            "freeze": lambda service: self._inject(service, frozen=True),
            "thaw": lambda service: self._inject(service, frozen=False),
            "delay": lambda service, seconds: self._inject(
                service, delay_s=_number("seconds", seconds, 0.0, 600.0)
            ),
            "drop": lambda service, fraction: self._inject(
                service, drop_fraction=_number("fraction", fraction, 0.0, 1.0)
            ),
            "refuse": lambda service, on=True: self._inject(service, refuse=bool(on)),
            "cut": lambda service: {"closed": robot.network.cut(_service(service))},
            "clear_faults": self._clear_faults,
            "restart": lambda boot_s=None: robot.restart(
                None if boot_s is None else _number("boot_s", boot_s, 0.0, 3600.0)
            ),
            "gripper_jam": lambda on=True: setattr(
                robot.controller.arm.gripper, "jammed", bool(on)
            ),
            "lose_object": lambda: robot.controller.arm.gripper.lose_object(),
            "place_object": lambda width_m: self._place("object_width_m", width_m=width_m),
            "place_walls": lambda gap_m: self._place("wall_gap_m", gap_m=gap_m),
            "record_start": lambda: robot.controller.recorder.start(),
            "record_save": lambda path: {"rows": robot.controller.recorder.save(Path(path))},
            "get_scene": lambda: {"scene": robot.controller.arm.scene()},
            "set_scene": lambda scene: robot.controller.arm.reset_scene(scene),
            "shutdown": lambda: robot.request_shutdown(),
            **Pendant(robot).operations(),
        }

    def _status(self) -> dict[str, Any]:
        controller = self._robot.controller
        tcp = controller.target.flange_from_tcp
        return {
            "model": controller.model.name,
            "runtime_state": controller.runtime_state.name,
            "robot_mode": controller.safety.robot_mode.name,
            "safety_mode": controller.safety.safety_mode.name,
            "remote_control": controller.remote_control,
            "speed_slider": controller.registers.speed_slider,
            "speed_scaling": controller.scaling().limiter,
            "contact_force_n": float(np.linalg.norm(controller.arm.contact_wrench[:3])),
            "servoing": controller.servoing,
            "actual_q": controller.arm.joints_rad.tolist(),
            "actual_tcp": frames.pose_of(
                controller.arm.kinematics.base_from_tcp(controller.arm.joints_rad, tcp)
            ).tolist(),
            "joint_speed_rad_s": float(np.abs(controller.arm.speeds_rad_s).max()),
            "payload_kg": controller.payload_kg,
            "gripper_opening_m": controller.arm.gripper.opening_m,
            "timestamp_s": controller.timestamp_s,
            "events": controller.events[-20:],
            "loop": self._robot.statistics(),
        }

    def _inject(self, service: str, **changes: float | bool) -> None:
        self._robot.network.inject(_service(service), **changes)

    def _clear_faults(self) -> None:
        for service in Service:
            self._robot.network.inject(
                service, frozen=False, delay_s=0.0, drop_fraction=0.0, refuse=False
            )
        self._robot.controller.arm.gripper.jammed = False

    def _place(self, what: str, **given: float | None) -> None:
        """Put something between or beside the fingers; None takes it away."""
        gripper = self._robot.controller.arm.gripper
        if not hasattr(gripper, what):
            raise RequestError("objects of the physics arm come from its scene: use set_scene")
        ((name, value),) = given.items()
        setattr(gripper, what, None if value is None else _number(name, value, 0.0, 1.0))


def _refusal(error: Exception) -> dict[str, Any]:
    return {"ok": False, "error": f"{type(error).__name__}: {str(error)[:500]}"}


def _service(name: str) -> Service:
    try:
        service = Service(name)
    except ValueError as error:
        known = ", ".join(item.value for item in Service if item is not Service.CONTROL_API)
        raise RequestError(f"service is {name!r}; known: {known}") from error
    if service is Service.CONTROL_API:
        raise RequestError("the control API itself has no faults")
    return service
