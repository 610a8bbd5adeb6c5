# SPDX-License-Identifier: MIT
"""Print the rate at which messages of a topic arrive: ros2 topic hz TOPIC."""

from __future__ import annotations

import argparse
import collections
import math
import time

from ..console import err, out
from ..errors import CommandError
from ..graph_node import add_spin_time, graph_node
from ..interface_types import load_type
from ..qos_options import add_qos_options
from ..topic_subscription import TopicSubscription, published_types

DEFAULT_WINDOW = 10000
REPORT_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("topic_name", help="name, such as /chatter")
    parser.add_argument(
        "-w",
        "--window",
        type=int,
        default=DEFAULT_WINDOW,
        help="average over at most this many messages (default: %(default)s)",
    )
    add_qos_options(parser)
    add_spin_time(parser)
    parser.set_defaults(run=_hz)


class RateMeter:
    """Intervals between arrivals, over a window."""

    def __init__(self, window: int) -> None:
        self.__intervals_s: collections.deque[float] = collections.deque(maxlen=window)
        self.__last_s: float | None = None
        self.__fresh = False

    def arrive(self, now_s: float) -> None:
        """Note one arrival."""
        if self.__last_s is not None:
            self.__intervals_s.append(now_s - self.__last_s)
            self.__fresh = True
        self.__last_s = now_s

    def report(self) -> str | None:
        """Return the statistics in ros2cli's layout, None if nothing new arrived."""
        if not self.__fresh:
            return None
        self.__fresh = False
        intervals = list(self.__intervals_s)
        mean = sum(intervals) / len(intervals)
        deviation = math.sqrt(sum((item - mean) ** 2 for item in intervals) / len(intervals))
        return (
            f"average rate: {1.0 / mean if mean > 0 else 0.0:.3f}\n"
            f"\tmin: {min(intervals):.3f}s max: {max(intervals):.3f}s "
            f"std dev: {deviation:.5f}s window: {len(intervals)}"
        )


def _hz(options: argparse.Namespace) -> int:
    from .topic import full_topic_name

    if options.window <= 0:
        raise CommandError(f"--window must be a positive number, got {options.window}")
    with graph_node() as node:
        topic = full_topic_name(node, options.topic_name)
        types = published_types(node, topic, options.spin_time)
        if not types:
            err(f"WARNING: topic [{topic}] does not appear to be published yet")
            while not types:
                types = published_types(node, topic, options.spin_time)
        meter = RateMeter(options.window)
        subscription = TopicSubscription(
            node,
            topic,
            load_type(types[0], "msg"),
            lambda _: meter.arrive(time.monotonic()),
            options,
            raw=True,  # arrivals are counted, contents are not looked at
        )
        next_report_s = time.monotonic() + REPORT_S
        while True:
            subscription.spin_once()
            if time.monotonic() >= next_report_s:
                report = meter.report()
                if report is not None:
                    out(report)
                next_report_s += REPORT_S
