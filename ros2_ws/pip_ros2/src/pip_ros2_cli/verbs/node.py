# SPDX-License-Identifier: MIT
"""Running nodes: list, info."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from rclpy.action import (
    get_action_client_names_and_types_by_node,
    get_action_server_names_and_types_by_node,
)
from rclpy.node import Node

from ..console import err, out
from ..graph_node import add_spin_time, graph_node, is_hidden, settled
from ..listing import add_list_verb
from ..node_names import find_node, node_names

Listed = list[tuple[str, list[str]]]


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
    info = verbs.add_parser("info", help="show topics, services and actions of a node")
    info.add_argument("node_name", help="name, such as /talker")
    info.add_argument(
        "--include-hidden", action="store_true", help="hidden topics, services and actions too"
    )
    add_spin_time(info)
    info.set_defaults(run=_info)


def _info(options: argparse.Namespace) -> None:
    with graph_node() as node:
        full_name = find_node(node, options.node_name, node_names, options.spin_time, "name")
        sections = settled(node, lambda: _sections(node, full_name), options.spin_time)
        count = node_names(node).count(full_name)
    if count > 1:
        err(
            f"There are {count} nodes in the graph with the exact name '{full_name}'. "
            "You are seeing information about only one of them."
        )
    out(full_name)
    for title, entries in sections:
        out(f"  {title}:")
        shown = [
            f"    {name}: {', '.join(types)}"
            for name, types in entries
            if options.include_hidden or not is_hidden(name)
        ]
        out("\n".join(shown))  # an empty section is an empty line, as in ros2cli


def _sections(node: Node, full_name: str) -> list[tuple[str, Listed]]:
    namespace, _, name = full_name.rpartition("/")

    def of(look: Callable[..., Listed], *first: Node) -> Listed:
        return sorted(look(*first, name, namespace or "/"))

    return [
        ("Subscribers", of(node.get_subscriber_names_and_types_by_node)),
        ("Publishers", of(node.get_publisher_names_and_types_by_node)),
        ("Service Servers", of(node.get_service_names_and_types_by_node)),
        ("Service Clients", of(node.get_client_names_and_types_by_node)),
        ("Action Servers", of(get_action_server_names_and_types_by_node, node)),
        ("Action Clients", of(get_action_client_names_and_types_by_node, node)),
    ]
