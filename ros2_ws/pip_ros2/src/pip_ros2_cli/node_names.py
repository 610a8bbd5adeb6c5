# SPDX-License-Identifier: MIT
"""Nodes by their full names, such as /cell/driver, and calls of their services."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from .errors import CommandError
from .graph_node import is_hidden, spin_until_done, wait_for

ANSWER_TIMEOUT_S = 5.0


def node_names(node: Node) -> list[str]:
    """Return the full names of all nodes now seen, sorted, hidden ones included."""
    return sorted(
        f"{namespace.rstrip('/')}/{name}"
        for name, namespace in node.get_node_names_and_namespaces()
    )


def names_with_service(node: Node, suffix: str, type_name: str) -> list[str]:
    """Return the nodes now seen that offer the service `<node>/<suffix>` of this type."""
    services = dict(node.get_service_names_and_types())
    return [n for n in node_names(node) if type_name in services.get(f"{n}/{suffix}", [])]


def find_node(
    node: Node, given: str, fitting: Callable[[Node], list[str]], timeout_s: float, lacking: str
) -> str:
    """Return the full name as soon as such a node is seen.

    Args:
        node: Looks at the graph.
        given: Name as the user wrote it, with or without the leading slash.
        fitting: Returns the names of the nodes that will do.
        timeout_s: Longest wait.
        lacking: What a node lacks that is seen but does not fit, such as "parameter services".
    """
    name = given if given.startswith("/") else f"/{given}"
    if not wait_for(lambda: name in fitting(node), timeout_s):
        if name in node_names(node):
            raise CommandError(f"Node '{name}' has no {lacking}")
        seen = ", ".join(item for item in node_names(node) if not is_hidden(item)) or "none"
        raise CommandError(f"Node not found: '{name}'. Nodes seen: {seen}")
    return name


def call_service(
    node: Node, service_type: Any, name: str, request: Any, timeout_s: float = ANSWER_TIMEOUT_S
) -> Any:
    """Call a service and return its response; silence is a CommandError."""
    client = node.create_client(service_type, name)
    try:
        if not client.wait_for_service(timeout_sec=ANSWER_TIMEOUT_S):
            raise CommandError(f"the service '{name}' does not become available")
        return answer_of(node, client.call_async(request), f"the service '{name}'", timeout_s)
    finally:
        node.destroy_client(client)


def answer_of(node: Node, future: Any, who: str, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
    """Return the future's result; `who` is named if it does not come."""
    if not spin_until_done(node, future, timeout_s):
        raise CommandError(f"{who} did not answer within {timeout_s:g} s; does its node spin?")
    if future.exception() is not None:
        raise CommandError(f"Exception while calling {who}: {future.exception()!r}")
    return future.result()
