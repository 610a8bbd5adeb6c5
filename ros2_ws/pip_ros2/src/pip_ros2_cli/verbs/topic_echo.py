# SPDX-License-Identifier: MIT
"""Print the messages of a topic as YAML: ros2 topic echo [--once] TOPIC [TYPE]."""

from __future__ import annotations

import argparse
import time
from typing import Any

from ..console import err, out
from ..errors import CommandError
from ..graph_node import add_spin_time, graph_node
from ..interface_types import load_type
from ..message_yaml import (
    DEFAULT_TRUNCATE_LENGTH,
    Style,
    field_of,
    message_to_csv,
    plain_value,
    value_to_yaml,
)
from ..qos_options import add_qos_options
from ..topic_subscription import TopicSubscription, known_types, published_types


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("topic_name", help="name, such as /chatter")
    parser.add_argument("message_type", nargs="?", help="type, if the topic is not published yet")
    add_qos_options(parser)
    parser.add_argument("--csv", action="store_true", help="values separated by commas")
    parser.add_argument("--field", metavar="FIELD", help="only this field, such as pose.position")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("-f", "--full-length", action="store_true", help="never truncate")
    length.add_argument(
        "-l",
        "--truncate-length",
        type=int,
        default=DEFAULT_TRUNCATE_LENGTH,
        metavar="N",
        help="truncate arrays and text after N items (default: %(default)s)",
    )
    parser.add_argument("--no-arr", action="store_true", help="only sizes of arrays")
    parser.add_argument("--no-str", action="store_true", help="only lengths of text")
    parser.add_argument("--flow-style", action="store_true", help="YAML in flow style")
    parser.add_argument("--once", action="store_true", help="print one message and exit")
    parser.add_argument(
        "--timeout", type=float, metavar="N", help="exit after N seconds without a message"
    )
    add_spin_time(parser)
    parser.set_defaults(run=_echo)


def _echo(options: argparse.Namespace) -> int:
    from .topic import full_topic_name

    style = Style(
        truncate_length=None if options.full_length else options.truncate_length,
        no_arr=options.no_arr,
        no_str=options.no_str,
        flow=options.flow_style,
    )
    with graph_node() as node:
        topic = full_topic_name(node, options.topic_name)
        types = published_types(node, topic, options.spin_time)
        if not types:
            err(f"WARNING: topic [{topic}] does not appear to be published yet")
            types = known_types(node, topic)
        message_type = load_type(_type_name(options.message_type, types, topic), "msg")
        printer = _Printer(options.field, options.csv, style)
        subscription = TopicSubscription(node, topic, message_type, printer.on_message, options)
        waiting_since, seen = time.monotonic(), 0
        while not (options.once and printer.count):
            subscription.spin_once()
            if printer.count > seen:
                waiting_since, seen = time.monotonic(), printer.count
            if options.timeout is not None and time.monotonic() - waiting_since > options.timeout:
                qos = subscription.qos
                raise CommandError(
                    f"no message on {topic} for {options.timeout:g} s "
                    f"(QoS asked for: {qos.reliability.name}, {qos.durability.name})"
                )
    return 0


def _type_name(given: str | None, types: list[str], topic: str) -> str:
    if given is not None:
        return given
    if not types:
        raise CommandError(
            "Could not determine the type for the passed topic; "
            f"give it: ros2 topic echo {topic} PACKAGE/msg/TYPE"
        )
    if len(types) > 1:
        raise CommandError(
            f"Cannot echo topic '{topic}', as it contains more than one type: [{', '.join(types)}]"
        )
    return types[0]


class _Printer:
    """Prints each message that arrives; with `once`, the caller looks at the count."""

    def __init__(self, field: str | None, csv: bool, style: Style) -> None:
        self.count = 0
        self.__field = field
        self.__csv = csv
        self.__style = style

    def on_message(self, message: Any) -> None:
        """Print one message."""
        self.count += 1
        value, field_type = field_of(message, self.__field) if self.__field else (message, "")
        if self.__csv:
            out(message_to_csv(value, self.__style))
            return
        plain = plain_value(value, field_type, self.__style)
        if isinstance(plain, (dict, list)):
            out(value_to_yaml(value, field_type, self.__style) + "---")
        else:
            out(f"{plain}\n---")
