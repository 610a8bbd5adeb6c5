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
from equi_control.real_address import is_loopback, refuse_loose_limits
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_core.cell_geometry import CellGeometry
from equi_core.contract import PolicyContract, Workspace
from equi_core.motion.safety_limits import SafetyLimits
from equi_core.setting_fields import SettingInfo, setting_infos

_SKIPPED = {"limits", "link", "servo", "workspace", "host", "geometry"}
_OWN = {
    "robot_ip": SettingInfo("address of the UR controller"),
    "contract": SettingInfo(
        "contract.json of the policy; its workspace and steps tighten the cell's limits"
    ),
    "state_rate_hz": SettingInfo(
        "rate of robot_state, joint_states and tcp_pose [Hz]", low=1.0, high=500.0
    ),
}
_ANY_HOST = "unset"


Declare = Callable[[str, Any, SettingInfo], Any]
"""Declares a parameter by name, default and description, if it is new, and returns its value."""


def declare_parameters(declare: Declare) -> None:
    """Declare every parameter. Their values are not looked at, so none is refused yet."""

    def declare_only(name: str, default: Any, info: SettingInfo) -> Any:
        declare(name, default, info)
        return _ANY_HOST if name == "robot_ip" else default

    read_config(declare_only)


def read_config(declare: Declare) -> tuple[DriverConfig, float]:
    """Declare and read every parameter; returns the configuration and the state rate [Hz].

    Raises ContractError, LimitsError or LinkError that names the offending value.
    """
    robot_ip = str(declare("robot_ip", "", _OWN["robot_ip"]))
    contract_path = str(declare("contract", "", _OWN["contract"]))
    state_rate_hz = float(declare("state_rate_hz", 50.0, _OWN["state_rate_hz"]))
    workspace = Workspace(**_fields(declare, "workspace.", Workspace()))
    limits = SafetyLimits(workspace=workspace, **_fields(declare, "limits.", SafetyLimits()))
    if contract_path:
        contract = PolicyContract.load(
            Path(contract_path).expanduser(), allow_unsigned=is_loopback(robot_ip)
        )
        limits = limits.within_contract(contract.action, contract.workspace)
    template = LinkConfig(host=_ANY_HOST)
    geometry = CellGeometry(**_fields(declare, "geometry.", CellGeometry()))
    link = LinkConfig(robot_ip, geometry, **_fields(declare, "link.", template))
    servo = ServoConfig(link, limits, **_fields(declare, "servo.", ServoConfig(template)))
    driver = DriverConfig(servo, **_fields(declare, "", DriverConfig(ServoConfig(template))))
    if robot_ip != _ANY_HOST:
        refuse_loose_limits(driver)
    return driver, state_rate_hz


def _fields(declare: Declare, prefix: str, defaults: Any) -> dict[str, Any]:
    """Values for the plain fields of a dataclass, declared as parameters under `prefix`."""
    values: dict[str, Any] = {}
    infos = setting_infos(type(defaults))
    for spec in dataclasses.fields(defaults):
        if spec.name in _SKIPPED:
            continue
        values[spec.name] = declare(
            prefix + spec.name, getattr(defaults, spec.name), infos[spec.name]
        )
    return values
