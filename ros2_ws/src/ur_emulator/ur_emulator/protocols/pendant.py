# SPDX-License-Identifier: MIT
"""Operations of the control API that stand for a person at the robot: pendant, hands, surroundings.

Vectors are in base_link (the controller's `base` turned by half a turn about z).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ur_emulator.arms import KinematicArm
from ur_emulator.client import RequestError
from ur_emulator.mechanics.contact import DEFAULT_STIFFNESS_N_M, Obstacle
from ur_emulator.mechanics.kinematics import Kinematics

_JOG_SPEED_M_S = 0.05
_MAX_OBSTACLES = 100


class Pendant:
    """A person at one emulated robot."""

    def __init__(self, robot: Any) -> None:
        self._robot = robot

    def operations(self) -> dict[str, Callable[..., dict[str, Any] | None]]:
        """Operations by name; their arguments are those of the request."""
        controller = self._robot.controller
        return {
            "play": lambda: {"playing": controller.resume_program()},
            "pause": lambda: {"paused": controller.pause_program()},
            "stop_program": lambda: controller.stop_program(),
            "set_speed_slider": self._set_speed_slider,
            "set_reduced_mode": lambda on=True: controller.safety.set_reduced(bool(on)),
            "set_remote_control": self._set_remote_control,
            "jog": self._jog,
            "freedrive_move": self._freedrive_move,
            "freedrive_joints": self._freedrive_joints,
            "gripper_power": lambda on=True: self._robot.robotiq.set_power(bool(on)),
            "add_obstacle": self._add_obstacle,
            "clear_obstacles": lambda: setattr(controller.arm, "obstacles", ()),
            "set_factory_kinematics": self._set_factory_kinematics,
        }

    def _set_speed_slider(self, fraction: float) -> None:
        registers = self._robot.controller.registers
        registers.speed_slider = checked_number("fraction", fraction, 0.0, 1.0)

    def _set_remote_control(self, on: bool) -> None:
        if not self._robot.controller.set_remote_control(bool(on)):
            raise RequestError("a CB3 controller knows no remote control; use an e-Series model")

    def _jog(self, dxyz_m: list[float], speed_m_s: float = _JOG_SPEED_M_S) -> dict[str, Any]:
        """Move the TCP by the pendant's arrows; ends the program."""
        speed = checked_number("speed_m_s", speed_m_s, 1e-3, 0.25)
        return {"moves": self._robot.controller.jog(_in_base(dxyz_m), speed)}

    def _freedrive_move(self, dxyz_m: list[float]) -> dict[str, Any]:
        """Move the measured TCP, as a person does in freedrive."""
        controller = self._robot.controller
        tcp, kinematics = controller.target.flange_from_tcp, controller.arm.kinematics
        pose = kinematics.base_from_tcp(controller.arm.joints_rad, tcp)
        pose[:3, 3] += _in_base(dxyz_m)
        joints = kinematics.solve(pose, tcp, controller.arm.joints_rad)
        return {"moved": controller.move_in_freedrive(joints)}

    def _freedrive_joints(self, joints_rad: list[float]) -> dict[str, Any]:
        """Leave the arm anywhere: another branch, a wound wrist."""
        joints = _vector("joints_rad", joints_rad, 6, 2 * math.pi + 1e-6)
        return {"moved": self._robot.controller.move_in_freedrive(joints)}

    def _add_obstacle(
        self,
        centre_m: list[float],
        size_m: list[float],
        yaw_rad: float = 0.0,
        stiffness_n_m: float = DEFAULT_STIFFNESS_N_M,
    ) -> None:
        arm = self._robot.controller.arm
        if not isinstance(arm, KinematicArm):
            raise RequestError("obstacles of the physics arm come from its scene: use set_scene")
        if self._robot.controller.profile.arm_stiffness_n_m <= 0:
            raise RequestError("this arm passes through everything; start with --profile strict")
        if len(arm.obstacles) >= _MAX_OBSTACLES:
            raise RequestError(f"there are {_MAX_OBSTACLES} obstacles already; use clear_obstacles")
        x, y, z = _in_base(centre_m).tolist()
        size = _vector("size_m", size_m, 3, 100.0).tolist()
        obstacle = Obstacle((x, y, z), tuple(size), float(yaw_rad), float(stiffness_n_m))
        arm.obstacles = (*arm.obstacles, obstacle)

    def _set_factory_kinematics(self, seed: int) -> None:
        controller = self._robot.controller
        if not isinstance(controller.arm, KinematicArm):
            raise RequestError("the links of the physics arm are nominal and stay so")
        number = int(checked_number("seed", seed, 0, 2**31))
        kinematics = Kinematics(controller.arm.kinematics.links, number)
        controller.arm.kinematics = controller.target.kinematics = kinematics


def checked_number(name: str, value: Any, least: float, most: float) -> float:
    """A finite number within bounds; raises RequestError."""
    number = float(value)
    if not least <= number <= most:  # false for NaN
        raise RequestError(f"{name} is {number}; allowed: {least} to {most}")
    return number


def _vector(name: str, values: Any, count: int, most: float) -> NDArray[np.float64]:
    if not isinstance(values, list) or len(values) != count:
        raise RequestError(f"{name} must be a list of {count} numbers")
    return np.array([checked_number(name, value, -most, most) for value in values])


def _in_base(dxyz_m: Any) -> NDArray[np.float64]:
    x, y, z = _vector("dxyz_m", dxyz_m, 3, 100.0)
    return np.array([-x, -y, z])
