# SPDX-License-Identifier: MIT
"""The arms that can be driven: link lengths, controller generation, joint limits. Data only.

Lengths are the nominal ones that Universal Robots publishes (article on Denavit-Hartenberg
parameters); the arm in a cell deviates from them by millimetres. The emulator has tables of its
own, on purpose: a mistake here must not be repeated there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class ArmModelError(ValueError):
    """An arm that is not in the table; says which ones are."""


@dataclass(frozen=True)
class ArmModel:
    """One arm of the UR family; all have the twists +90, 0, 0, +90, -90, 0 degrees."""

    name: str
    dashboard_name: str
    """What the controller answers to `get robot model`: e-Series arms leave out the e."""
    controller_major: int
    """Major version of its controller software: 3 (CB3) or 5 (e-Series)."""
    links_m: tuple[float, float, float, float, float, float]
    """Denavit-Hartenberg lengths d1, a2, a3, d4, d5, d6 [m]."""
    joint_limit_rad: float = 2.0 * math.pi
    """Every joint rotates by this much to either side of zero."""

    @property
    def links(self) -> FloatArray:
        """`links_m` as an array (6,)."""
        return np.array(self.links_m)


ARM_MODELS = {
    model.name: model
    for model in (
        ArmModel("ur3", "UR3", 3, (0.1519, -0.24365, -0.21325, 0.11235, 0.08535, 0.0819)),
        ArmModel("ur5", "UR5", 3, (0.089159, -0.425, -0.39225, 0.10915, 0.09465, 0.0823)),
        ArmModel("ur10", "UR10", 3, (0.1273, -0.612, -0.5723, 0.163941, 0.1157, 0.0922)),
        ArmModel("ur3e", "UR3", 5, (0.15185, -0.24355, -0.2132, 0.13105, 0.08535, 0.0921)),
        ArmModel("ur5e", "UR5", 5, (0.1625, -0.425, -0.3922, 0.1333, 0.0997, 0.0996)),
        ArmModel("ur10e", "UR10", 5, (0.1807, -0.6127, -0.57155, 0.17415, 0.11985, 0.11655)),
    )
}
"""By the name that a cell file uses."""
UR5 = ARM_MODELS["ur5"]


def arm_model(name: str) -> ArmModel:
    """The arm of that name.

    Raises:
        ArmModelError: there is none.
    """
    try:
        return ARM_MODELS[name]
    except KeyError as error:
        raise ArmModelError(
            f"robot model is '{name}'; known are {', '.join(ARM_MODELS)}: correct the cell file"
        ) from error


def model_of_controller(dashboard_name: str, controller_major: int) -> str:
    """Name of the arm that a controller says it drives; its own words if it is none of ours."""
    for model in ARM_MODELS.values():
        if model.dashboard_name == dashboard_name.strip().upper() and (
            model.controller_major <= 3
        ) == (controller_major <= 3):
            return model.name
    return f"{dashboard_name.strip()} with controller software {controller_major}.x"
