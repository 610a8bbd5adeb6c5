# SPDX-License-Identifier: MIT
"""Topics: list, info, echo, hz, pub."""

from __future__ import annotations

import argparse

from rclpy.expand_topic_name import expand_topic_name
from rclpy.node import Node

from ..console import out
from ..errors import CommandError
from ..graph_node import add_spin_time, graph_node, settled, wait_for
from ..listing import add_list_verb
from ..topic_subscription import known_types
from . import topic_echo, topic_hz, topic_pub


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="verb")
    add_list_verb(verbs, "topics", _topics, hidden_flags=("--include-hidden-topics",))
    info = verbs.add_parser("info", help="show type, publishers and subscriptions of a topic")
    info.add_argument("topic_name", help="name, such as /chatter")
    info.add_argument("-v", "--verbose", action="store_true", help="nodes and their QoS")
    add_spin_time(info)
    info.set_defaults(run=_info)
    topic_echo.add_arguments(verbs.add_parser("echo", help="print the messages of a topic"))
    topic_hz.add_arguments(verbs.add_parser("hz", help="print the rate of a topic"))
    topic_pub.add_arguments(verbs.add_parser("pub", help="publish a message to a topic"))


def full_topic_name(node: Node, topic: str) -> str:
    """Return the name with its leading slash; an invalid one is a CommandError."""
    try:
        return str(expand_topic_name(topic, node.get_name(), node.get_namespace()))
    except ValueError as error:
        raise CommandError(f"'{topic}' is no valid topic name: {error}") from None


def _topics(node: Node) -> dict[str, list[str]]:
    return dict(node.get_topic_names_and_types())


def _info(options: argparse.Namespace) -> None:
    with graph_node() as node:
        topic = full_topic_name(node, options.topic_name)
        types = wait_for(lambda: known_types(node, topic), options.spin_time)
        if not types:
            known = ", ".join(name for name, _ in node.get_topic_names_and_types())
            raise CommandError(f"Unknown topic '{topic}'. Topics seen: {known}")
        publishers, subscriptions = settled(
            node,
            lambda: (
                sorted(str(info) for info in node.get_publishers_info_by_topic(topic)),
                sorted(str(info) for info in node.get_subscriptions_info_by_topic(topic)),
            ),
            options.spin_time,
        )
    gap = "\n" if options.verbose else ""
    out(f"Type: {types[0] if len(types) == 1 else types}{gap}")
    for title, endpoints in (("Publisher", publishers), ("Subscription", subscriptions)):
        out(f"{title} count: {len(endpoints)}{gap}")
        if options.verbose:
            for endpoint in endpoints:
                out(f"{endpoint}\n")
