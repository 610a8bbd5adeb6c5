# SPDX-License-Identifier: MIT
"""How to reach and set up one robot, and what can go wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field

from equi_control.rtde.robot_reading import Problem
from equi_core.cell_geometry import CellGeometry
from equi_core.motion.arm_models import ArmModelError, arm_model
from equi_core.setting_fields import out_of_range, setting


class LinkError(RuntimeError):
    """The controller cannot be reached or refuses; says what the operator can do."""

    def __init__(self, message: str, problem: Problem = Problem.ROBOT_NOT_RUNNING) -> None:
        super().__init__(message)
        self.problem = problem
        """What is wrong with the robot, as a code."""


class LinkLostError(LinkError):
    """The connection broke while the library was being used."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Problem.CONNECTION_LOST)


@dataclass(frozen=True)
class LinkConfig:
    """How to reach and set up one robot."""

    host: str
    geometry: CellGeometry = field(default_factory=CellGeometry)
    """TCP, mounting of the gripper, and the task frame that everything above the link works in."""
    robot_model: str = "ur5"
    """The arm: ur3, ur5, ur10, ur3e, ur5e or ur10e. Another one at this address is refused."""
    payload_kg: float = setting(0.95, low=0.0, high=5.0)
    payload_cog_m: tuple[float, float, float] = (0.0, 0.0, 0.058)
    """Centre of mass of gripper and coupling in the flange frame [m]."""
    watchdog_hz: float = setting(10.0, low=1.0, high=125.0)
    """The controller stops the arm by itself if it hears nothing for 1 / this [s]. Until then the
    arm goes no further than the last pose, so a longer wait does not lengthen its way."""
    lookahead_s: float = setting(0.1, low=0.03, high=0.2)
    """Smoothing of servoL, 0.03 to 0.2 s. A real arm has the default; contact was rehearsed so."""
    gain: float = setting(300.0, low=100.0, high=2000.0)
    """Stiffness of servoL, 100 to 2000. A real arm has at most the default."""

    def __post_init__(self) -> None:
        if not self.host:
            raise LinkError("robot address is empty; set it to the controller's IP address")
        try:
            arm_model(self.robot_model)
        except ArmModelError as error:
            raise LinkError(str(error)) from error
        wrong = out_of_range(self)
        if wrong:
            raise LinkError(wrong)
