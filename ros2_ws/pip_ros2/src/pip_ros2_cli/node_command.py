"""Running nodes: list."""

from __future__ import annotations

import argparse

from rclpy.node import Node

from .console import out
from .graph_node import add_spin_time, graph_node, is_hidden, settled


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="verb")
    listing = verbs.add_parser("list", help="list the running nodes")
    listing.add_argument("-a", "--all", action="store_true", help="hidden nodes too")
    listing.add_argument("-c", "--count-nodes", action="store_true", help="only their number")
    add_spin_time(listing)
    listing.set_defaults(run=_list)


def node_names(node: Node) -> list[str]:
    """Return the full names of all nodes now seen, sorted, hidden ones included."""
    return sorted(
        f"{namespace.rstrip('/')}/{name}"
        for name, namespace in node.get_node_names_and_namespaces()
    )


def _list(options: argparse.Namespace) -> None:
    with graph_node() as node:
        names = settled(node, lambda: node_names(node), options.spin_time)
    shown = [name for name in names if options.all or not is_hidden(name)]
    if options.count_nodes:
        out(str(len(shown)))
        return
    for name in shown:
        out(name)
