# SPDX-License-Identifier: MIT
"""Node names and namespaces: validity and composition, by the rules of ROS 2 names."""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_LENGTH = 255


class InvalidNameError(ValueError):
    """A node name or namespace breaks the rules of ROS 2 names."""


def check_node_name(name: str) -> None:
    """Raise InvalidNameError unless the name is letters, digits, underscores, no digit first."""
    if not NAME.fullmatch(name) or len(name) > MAX_LENGTH:
        raise InvalidNameError(
            f"node name '{name}' is invalid: use letters, digits and underscores, not starting "
            f"with a digit, at most {MAX_LENGTH} characters"
        )


def check_namespace(namespace: str) -> None:
    """Raise InvalidNameError unless the absolute namespace is '/' or '/part/part'."""
    parts = namespace.split("/")[1:]
    valid = namespace == "/" or (
        namespace.startswith("/") and all(NAME.fullmatch(part) for part in parts)
    )
    if not valid or len(namespace) > MAX_LENGTH:
        raise InvalidNameError(
            f"namespace '{namespace}' is invalid: use parts of letters, digits and underscores, "
            "separated by single slashes, none starting with a digit, no slash at the end"
        )


def prefixed_namespace(base: str | None, namespace: str | None) -> str | None:
    """Return `namespace` below `base`; an absolute namespace ignores the base."""
    if namespace is not None and (base is None or namespace.startswith("/")):
        combined = namespace
    elif base is None:
        return None
    elif not namespace:
        combined = base
    else:
        combined = f"{base.rstrip('/')}/{namespace}"
    if len(combined) > 1:
        combined = combined.rstrip("/")
    return combined


def absolute_namespace(namespace: str | None) -> str | None:
    """Return the namespace with a leading slash; None stays None."""
    if namespace is None or namespace.startswith("/"):
        return namespace
    return f"/{namespace}"
