# SPDX-License-Identifier: MIT
"""Publish messages: ros2 topic pub [--once] TOPIC TYPE '{field: value}'."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from rclpy.node import Node
from rclpy.publisher import Publisher

from ..console import out
from ..errors import CommandError
from ..graph_node import POLL_S, graph_node, spin_once
from ..interface_types import load_type
from ..message_yaml import Stamps, fill_message, read_values
from ..qos_options import add_qos_options, profile_of

WAIT_NOTICE_S = 1.0
KEEP_ALIVE_S = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("topic_name", help="name, such as /chatter")
    parser.add_argument("message_type", help="type, such as std_msgs/msg/String")
    parser.add_argument(
        "values",
        nargs="?",
        default="{}",
        help="message in YAML, such as '{data: hi}'; 'auto' for a header and 'now' for a stamp "
        "mean the time of publishing",
    )
    parser.add_argument(
        "-r", "--rate", type=float, default=1.0, metavar="N", help="rate in Hz (default: 1)"
    )
    parser.add_argument(
        "-p", "--print", type=int, default=1, metavar="N", help="print every N-th message"
    )
    times = parser.add_mutually_exclusive_group()
    times.add_argument("-1", "--once", action="store_true", help="publish one message and exit")
    times.add_argument(
        "-t", "--times", type=int, default=0, metavar="N", help="publish this many and exit"
    )
    parser.add_argument(
        "-w",
        "--wait-matching-subscriptions",
        type=int,
        metavar="N",
        help="first wait for this many subscriptions (default: 1 with --once and --times, else 0)",
    )
    parser.add_argument(
        "--max-wait-time-secs", type=float, metavar="N", help="give up that wait after N seconds"
    )
    parser.add_argument(
        "--keep-alive",
        type=float,
        default=KEEP_ALIVE_S,
        metavar="N",
        help="seconds to stay after the last message (default: %(default)s)",
    )
    add_qos_options(parser, of_publishers=False)
    parser.set_defaults(run=_pub)


def _pub(options: argparse.Namespace) -> int:
    from .topic import full_topic_name

    _check(options)
    times = 1 if options.once else options.times
    message = load_type(options.message_type, "msg")()
    stamps = Stamps()
    fill_message(message, read_values(options.values), stamps)
    with graph_node() as node:
        topic = full_topic_name(node, options.topic_name)
        publisher = node.create_publisher(type(message), topic, profile_of(options))
        wanted = options.wait_matching_subscriptions
        _wait_for_subscriptions(
            publisher, int(times != 0) if wanted is None else wanted, options.max_wait_time_secs
        )
        out("publisher: beginning loop")
        count = 0

        def publish() -> None:
            nonlocal count
            count += 1
            stamps.set(node.get_clock().now().to_msg())
            if options.print and count % options.print == 0:
                out(f"publishing #{count}: {message!r}\n")
            publisher.publish(message)

        publish()
        _repeat(node, publish, 1.0 / options.rate, lambda: times == 0 or count < times)
        time.sleep(options.keep_alive)  # for the messages to reach the wire
    return 0


def _check(options: argparse.Namespace) -> None:
    for name in ("rate", "max_wait_time_secs"):
        value = getattr(options, name)
        if value is not None and not value > 0.0:
            raise CommandError(f"--{name.replace('_', '-')} must be positive, got {value:g}")
    for name in ("times", "print", "wait_matching_subscriptions", "keep_alive"):
        value = getattr(options, name)
        if value is not None and not value >= 0:
            raise CommandError(f"--{name.replace('_', '-')} must not be negative, got {value:g}")


def _wait_for_subscriptions(publisher: Publisher, wanted: int, at_most_s: float | None) -> None:
    started_s = time.monotonic()
    next_notice_s = started_s
    while publisher.get_subscription_count() < wanted:
        now_s = time.monotonic()
        if now_s >= next_notice_s:
            out(f"Waiting for at least {wanted} matching subscription(s)...")
            next_notice_s += WAIT_NOTICE_S
        if at_most_s is not None and now_s - started_s >= at_most_s:
            raise CommandError(
                f"Timed out waiting for subscribers: Expected {wanted} subscribers but only got "
                f"{publisher.get_subscription_count()} subscribers"
            )
        time.sleep(POLL_S)


def _repeat(
    node: Node, publish: Callable[[], None], period_s: float, go_on: Callable[[], bool]
) -> None:
    due_s = time.monotonic() + period_s
    while go_on():
        wait_s = due_s - time.monotonic()
        if wait_s > 0.0:
            spin_once(node, min(wait_s, 0.1))  # in short steps: Ctrl-C is noticed between them
        else:
            publish()
            due_s += period_s
