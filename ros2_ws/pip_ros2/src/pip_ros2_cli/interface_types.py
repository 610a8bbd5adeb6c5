# SPDX-License-Identifier: MIT
"""Message, service and action types by their names, such as std_msgs/msg/String."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import CommandError

KINDS = ("msg", "srv", "action")


def split_type(name: str, kind: str | None = None) -> tuple[str, str, str]:
    """Return (package, kind, type name); `kind` fills the middle of the short form pkg/Type."""
    parts = name.split("/")
    if len(parts) == 2 and kind is not None:
        parts.insert(1, kind)
    if len(parts) != 3 or parts[1] not in KINDS or not all(parts):
        raise CommandError(
            f"'{name}' is no interface type; write package/{kind or 'msg|srv|action'}/Type, "
            f"such as std_msgs/msg/String"
        )
    return parts[0], parts[1], parts[2]


def load_type(name: str, kind: str) -> Any:
    """Return the Python class of an interface type."""
    package, middle, type_name = split_type(name, kind)
    if middle != kind:
        raise CommandError(f"'{name}' is a {middle}, where a {kind} is expected")
    try:
        module = importlib.import_module(f"{package}.{middle}")
    except ModuleNotFoundError:
        raise CommandError(
            f"The passed {kind} type '{name}' is invalid: no Python module '{package}.{middle}'; "
            "is the package built and its workspace sourced?"
        ) from None
    found = getattr(module, type_name, None)
    if found is None:
        available = sorted(item for item in dir(module) if item[0].isupper() and "_" not in item)
        raise CommandError(
            f"The passed {kind} type '{name}' is invalid: '{package}.{middle}' has: "
            f"{', '.join(available)}"
        )
    return found
