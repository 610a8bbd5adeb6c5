"""Topics: list, info, echo, hz."""

from __future__ import annotations

import argparse

from rclpy.expand_topic_name import expand_topic_name
from rclpy.node import Node

from . import topic_echo, topic_hz
from .console import out
from .errors import CommandError
from .graph_node import add_spin_time, graph_node, is_hidden, settled, wait_for


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="verb")
    listing = verbs.add_parser("list", help="list the topics")
    listing.add_argument("-t", "--show-types", action="store_true", help="show their types")
    listing.add_argument("-c", "--count-topics", action="store_true", help="only their number")
    listing.add_argument("--include-hidden-topics", action="store_true", help="hidden topics too")
    add_spin_time(listing)
    listing.set_defaults(run=_list)
    info = verbs.add_parser("info", help="show type, publishers and subscriptions of a topic")
    info.add_argument("topic_name", help="name, such as /chatter")
    info.add_argument("-v", "--verbose", action="store_true", help="nodes and their QoS")
    add_spin_time(info)
    info.set_defaults(run=_info)
    topic_echo.add_arguments(verbs.add_parser("echo", help="print the messages of a topic"))
    topic_hz.add_arguments(verbs.add_parser("hz", help="print the rate of a topic"))


def topic_types(node: Node, topic: str, timeout_s: float) -> list[str]:
    """Return the types of a topic as soon as it is seen, or an empty list after the timeout."""
    return wait_for(lambda: dict(node.get_topic_names_and_types()).get(topic, []), timeout_s)


def full_topic_name(node: Node, topic: str) -> str:
    """Return the name with its leading slash; an invalid one is a CommandError."""
    try:
        return str(expand_topic_name(topic, node.get_name(), node.get_namespace()))
    except ValueError as error:
        raise CommandError(f"'{topic}' is no valid topic name: {error}") from None


def _list(options: argparse.Namespace) -> None:
    with graph_node() as node:
        topics = settled(node, lambda: sorted(node.get_topic_names_and_types()), options.spin_time)
    shown = [
        (name, types)
        for name, types in topics
        if options.include_hidden_topics or not is_hidden(name)
    ]
    if options.count_topics:
        out(str(len(shown)))
        return
    for name, types in shown:
        out(f"{name} [{', '.join(types)}]" if options.show_types else name)


def _info(options: argparse.Namespace) -> None:
    with graph_node() as node:
        topic = full_topic_name(node, options.topic_name)
        types = topic_types(node, topic, options.spin_time)
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
