# SPDX-License-Identifier: MIT
"""Parameter files, as `ros2 param dump` prints and `ros2 param load` reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from rcl_interfaces.msg import Parameter as ParameterMessage
from rclpy.parameter import Parameter

from .errors import CommandError

SECTION = "ros__parameters"
ANY_NODE = "/**"


def parameters_for(node_name: str, path: str, *, wildcard: bool = True) -> list[ParameterMessage]:
    """Return what a parameter file gives for one node.

    Args:
        node_name: Full name, such as /cell/driver.
        path: YAML file.
        wildcard: Whether what the file gives for `/**` counts too; the node's own comes last.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"'{path}' cannot be read as a parameter file: {error}") from None
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise CommandError(f"'{path}' is no parameter file: it must map node names to {SECTION}")
    keys = [key for key in content if wildcard and key == ANY_NODE]
    keys += [key for key in content if "/" + key.strip("/") == node_name]
    if not keys:
        raise CommandError(
            f"'{path}' gives no parameters for {node_name}, only for: {', '.join(content)}"
        )
    found: dict[str, Any] = {}
    for key in keys:
        section = content[key].get(SECTION) if isinstance(content[key], dict) else None
        if not isinstance(section, dict):
            raise CommandError(f"'{path}' has no '{SECTION}' for {key}")
        found.update(_flat(section))
    return [_message(name, value) for name, value in found.items()]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _message(name: str, value: Any) -> ParameterMessage:
    try:
        return Parameter(name, value=value).to_parameter_msg()
    except (TypeError, ValueError, AttributeError) as error:
        raise CommandError(f"no parameter can hold {name} = {value!r}: {error}") from None
