# SPDX-License-Identifier: MIT
"""Running nodes: list."""

from __future__ import annotations

import argparse

from rclpy.node import Node

from ..listing import add_list_verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="verb")
    add_list_verb(
        verbs,
        "nodes",
        lambda node: {name: [] for name in node_names(node)},
        hidden_flags=("-a", "--all"),
        typed=False,
    )


def node_names(node: Node) -> list[str]:
    """Return the full names of all nodes now seen, sorted, hidden ones included."""
    return sorted(
        f"{namespace.rstrip('/')}/{name}"
        for name, namespace in node.get_node_names_and_namespaces()
    )
