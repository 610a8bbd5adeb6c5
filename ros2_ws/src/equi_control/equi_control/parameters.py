# SPDX-License-Identifier: MIT
"""Parameters of the driver -> frozen configuration; the stricter of cell and contract wins.

Knows no ROS: the node hands in how a parameter is declared and read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from equi_control.driver.config import DriverConfig
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_core.cell_geometry import CellGeometry
from equi_core.contract import PolicyContract, Workspace
from equi_core.motion.safety_limits import SafetyLimits

_SKIPPED = {"limits", "link", "servo", "workspace", "host", "geometry"}
_WORDS = {
    "robot_ip": "address of the UR controller",
    "contract": "contract.json of the policy; its workspace and steps tighten the cell's limits",
    "state_rate_hz": "rate of robot_state, joint_states and tcp_pose [Hz]",
}


Declare = Callable[[str, Any, str], Any]
"""Declares a parameter by name, default and description, and returns its value."""


def read_config(declare: Declare) -> tuple[DriverConfig, float]:
    """Declare and read every parameter; returns the configuration and the state rate [Hz].

    Raises ContractError, LimitsError or LinkError that names the offending value.
    """
    robot_ip = str(_read(declare, "robot_ip", ""))
    contract_path = str(_read(declare, "contract", ""))
    state_rate_hz = float(_read(declare, "state_rate_hz", 50.0))
    workspace = Workspace(**_fields(declare, "workspace.", Workspace()))
    limits = SafetyLimits(workspace=workspace, **_fields(declare, "limits.", SafetyLimits()))
    if contract_path:
        contract = PolicyContract.load(Path(contract_path).expanduser())
        limits = limits.within_contract(contract.action, contract.workspace)
    template = LinkConfig(host="unset")
    geometry = CellGeometry(**_fields(declare, "geometry.", CellGeometry()))
    link = LinkConfig(robot_ip, geometry, **_fields(declare, "link.", template))
    servo = ServoConfig(link, limits, **_fields(declare, "servo.", ServoConfig(template)))
    driver = DriverConfig(servo, **_fields(declare, "", DriverConfig(ServoConfig(template))))
    return driver, state_rate_hz


def _fields(declare: Declare, prefix: str, defaults: Any) -> dict[str, Any]:
    """Values for the plain fields of a dataclass, declared as parameters under `prefix`."""
    values: dict[str, Any] = {}
    for spec in dataclasses.fields(defaults):
        if spec.name in _SKIPPED:
            continue
        default = getattr(defaults, spec.name)
        plain = list(default) if isinstance(default, tuple) else default
        value = _read(declare, prefix + spec.name, plain)
        values[spec.name] = tuple(value) if isinstance(default, tuple) else value
    return values


def _read(declare: Declare, name: str, default: Any) -> Any:
    description = _WORDS.get(name, name.rsplit(".", 1)[-1].replace("_", " "))
    return declare(name, default, description)
