# SPDX-License-Identifier: MIT
"""The verb `list`, which most commands have: names, their number, or names with types."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from .console import out
from .graph_node import add_spin_time, graph_node, is_hidden, settled

Names = Callable[[Node], dict[str, list[str]]]


def add_list_verb(
    verbs: Any, plural: str, names: Names, *, hidden_flags: tuple[str, ...] = (), typed: bool = True
) -> None:
    """Add the verb.

    Args:
        verbs: What `add_subparsers` has returned.
        plural: What is listed, such as `topics`.
        names: Reads the names and their types from the graph.
        hidden_flags: Options that list hidden names too; without any they are always listed.
        typed: Whether the names have types that can be shown.
    """
    parser: argparse.ArgumentParser = verbs.add_parser("list", help=f"list the {plural}")
    parser.set_defaults(run=_list, names=names, show_types=False, hidden=not hidden_flags)
    if typed:
        parser.add_argument("-t", "--show-types", action="store_true", help="show their types")
    parser.add_argument(
        "-c", f"--count-{plural}", dest="count", action="store_true", help="only their number"
    )
    if hidden_flags:
        parser.add_argument(
            *hidden_flags, dest="hidden", action="store_true", help=f"hidden {plural} too"
        )
    add_spin_time(parser)


def _list(options: argparse.Namespace) -> None:
    with graph_node() as node:
        found = settled(node, lambda: sorted(options.names(node).items()), options.spin_time)
    shown = [(name, types) for name, types in found if options.hidden or not is_hidden(name)]
    if options.count:
        out(str(len(shown)))
        return
    for name, types in shown:
        out(f"{name} [{', '.join(types)}]" if options.show_types else name)
