# SPDX-License-Identifier: MIT
"""Parameters of a node -> frozen settings, one parameter per field.

Description, unit and range come from the dataclass (`equi_core.setting_fields`); so do its rules:
a value that the dataclass would refuse is refused when somebody sets it, with the same sentence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from equi_core.setting_fields import SettingInfo, setting_infos

Settings = TypeVar("Settings")
_WIDEST = 1e18
"""Stands for a side of a range that has no limit; ROS knows closed ranges only."""


def declare(
    node: Node,
    name: str,
    default: Any,
    info: SettingInfo | str,
    *,
    read_only: bool = True,
) -> Any:
    """Declare one parameter with its description, and return its value.

    A parameter that exists already is only read. A tuple is a list in ROS, and a tuple again here.
    """
    known = SettingInfo(info) if isinstance(info, str) else info
    plain = list(default) if isinstance(default, tuple) else default
    if not node.has_parameter(name):
        descriptor = ParameterDescriptor(
            name=name,
            description=known.description,
            read_only=read_only,
            additional_constraints=_constraints(known),
        )
        _add_range(descriptor, plain, known)
        if plain == []:
            # The type of an empty list is unknown to ROS; all lists of names here hold strings.
            node.declare_parameter(name, Parameter.Type.STRING_ARRAY, descriptor)
        else:
            node.declare_parameter(name, plain, descriptor)
    return _value(node, name, default)


def declare_settings(
    node: Node,
    defaults: Settings,
    prefix: str = "",
    skip: tuple[str, ...] = (),
    *,
    read_only: bool = True,
) -> Settings:
    """Declare a dataclass's fields as parameters and return it with their values.

    Args:
        node: the node whose parameters they are.
        defaults: an instance of the dataclass; tuples are lists in ROS.
        prefix: in front of every parameter name, such as "noise.".
        skip: fields that stay as in `defaults`.
        read_only: whether nobody may change them while the node exists.

    Raises:
        ValueError: the dataclass refuses the values.
    """
    values = {
        name: declare(node, prefix + name, getattr(defaults, name), info, read_only=read_only)
        for name, info in setting_infos(type(defaults)).items()
        if name not in skip
    }
    if not read_only:
        check = _Check(node, defaults, prefix, tuple(values))
        node.add_on_set_parameters_callback(check)
    return dataclasses.replace(defaults, **values)  # type: ignore[type-var]


def read_settings(
    node: Node, defaults: Settings, prefix: str = "", skip: tuple[str, ...] = ()
) -> Settings:
    """A dataclass with the present values of parameters that were declared before."""
    values = {}
    for spec in dataclasses.fields(defaults):  # type: ignore[arg-type]
        if spec.name not in skip:
            values[spec.name] = _value(node, prefix + spec.name, getattr(defaults, spec.name))
    return dataclasses.replace(defaults, **values)  # type: ignore[type-var]


def refuse_changes(node: Node, reason: Callable[[], str]) -> None:
    """Refuse every change of a parameter while `reason` returns a sentence."""

    def check(changed: Sequence[Parameter]) -> SetParametersResult:
        why = reason()
        return SetParametersResult(successful=not why, reason=why)

    node.add_on_set_parameters_callback(check)


def _value(node: Node, name: str, default: Any) -> Any:
    """Present value of a declared parameter; the default where it has none yet."""
    value = node.get_parameter_or(name).value
    if value is None:
        return default
    return tuple(value) if isinstance(default, tuple) else value


class _Check:
    """Holds changed values against the rules of the dataclass."""

    def __init__(self, node: Node, defaults: Any, prefix: str, names: tuple[str, ...]) -> None:
        self._node, self._defaults = node, defaults
        self._names = {prefix + name: name for name in names}

    def __call__(self, changed: Sequence[Parameter]) -> SetParametersResult:
        values = {}
        for full, name in self._names.items():
            default = getattr(self._defaults, name)
            value = next((item.value for item in changed if item.name == full), None)
            if value is None:
                value = _value(self._node, full, default)
            values[name] = tuple(value) if isinstance(default, tuple) else value
        try:
            dataclasses.replace(self._defaults, **values)
        except ValueError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)


def _constraints(info: SettingInfo) -> str:
    if info.low is None and info.high is None:
        return ""
    low = "" if info.low is None else f"at least {info.low:g}"
    high = "" if info.high is None else f"at most {info.high:g}"
    return ", ".join(part for part in (low, high) if part)


def _add_range(descriptor: ParameterDescriptor, default: Any, info: SettingInfo) -> None:
    if info.low is None and info.high is None:
        return
    low = -_WIDEST if info.low is None else info.low
    high = _WIDEST if info.high is None else info.high
    if isinstance(default, bool):
        return
    if isinstance(default, int):
        descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high), step=1)]
    elif isinstance(default, float):
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=float(low), to_value=float(high), step=0.0)
        ]
