# SPDX-License-Identifier: MIT
"""Parameters of a node -> frozen settings, one parameter per field."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from rclpy.node import Node

Settings = TypeVar("Settings")


def declare_settings(
    node: Node, defaults: Settings, prefix: str = "", skip: tuple[str, ...] = ()
) -> Settings:
    """Declare a dataclass's fields as parameters and return it with their values.

    Args:
        node: the node whose parameters they are.
        defaults: an instance of the dataclass; tuples are lists in ROS.
        prefix: in front of every parameter name, such as "noise.".
        skip: fields that stay as in `defaults`.
    """
    values: dict[str, Any] = {}
    for spec in dataclasses.fields(defaults):  # type: ignore[arg-type]
        if spec.name in skip:
            continue
        default = getattr(defaults, spec.name)
        plain = list(default) if isinstance(default, tuple) else default
        value = node.declare_parameter(prefix + spec.name, plain).value
        values[spec.name] = tuple(value) if isinstance(default, tuple) else value
    return dataclasses.replace(defaults, **values)  # type: ignore[type-var]
