# SPDX-License-Identifier: MIT
"""The short-lived node by which commands look at the ROS graph."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import rclpy
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

Result = TypeVar("Result")

DEFAULT_SPIN_TIME_S = 5.0
SETTLE_S = 1.0
POLL_S = 0.02
SPIN_STEP_S = 0.1
RESTLESS_FACTOR = 6.0
"""How many times the timeout a graph that changes all the time is looked at."""
NODE_NOT_YET_SEEN = "_NODE_NAME_UNKNOWN_"
"""What rmw_dds_common calls the node of an endpoint before the node itself is discovered."""
HIDDEN_PREFIX = "_"


def add_spin_time(parser: argparse.ArgumentParser) -> None:
    """Add the option that bounds the wait for discovery."""
    parser.add_argument(
        "--spin-time",
        type=float,
        default=DEFAULT_SPIN_TIME_S,
        metavar="SECONDS",
        help="longest wait for news of other nodes (default: %(default)s)",
    )


@contextlib.contextmanager
def graph_node() -> Iterator[Node]:
    """Yield a hidden node; Ctrl-C raises KeyboardInterrupt as in any Python program."""
    rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node(
        f"{HIDDEN_PREFIX}ros2cli_{os.getpid()}",
        start_parameter_services=False,
        enable_rosout=False,
    )
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


def wait_for(condition: Callable[[], Result], timeout_s: float) -> Result:
    """Return the condition's value as soon as it is true, or its last value after the timeout."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value or time.monotonic() >= deadline:
            return value
        time.sleep(POLL_S)


def settled(node: Node, look: Callable[[], Result], timeout_s: float) -> Result:
    """Return what `look` sees once other nodes are seen and nothing changes any more.

    Discovery never says that it is complete. So a picture is taken as whole that shows another
    node, in which every endpoint belongs to a node, and that has stood still for SETTLE_S and for
    as long as it took to build up: on a busy machine all of it is slow. Without such a picture the
    wait ends when nothing has changed for `timeout_s`; a graph that never rests ends it too.
    """

    def picture() -> tuple[list[tuple[str, str]], Result]:
        return sorted(node.get_node_names_and_namespaces()), look()

    started_at = time.monotonic()
    seen, changed_at = picture(), started_at
    while True:
        now = time.monotonic()
        quiet_s = now - changed_at
        alone = len(seen[0]) <= 1
        still = not alone and quiet_s >= max(SETTLE_S, changed_at - started_at)
        if still and not _has_ownerless_endpoint(node):
            return seen[1]
        if quiet_s >= timeout_s or now - started_at >= RESTLESS_FACTOR * timeout_s:
            return seen[1]
        time.sleep(POLL_S)
        now_seen = picture()
        if now_seen != seen:
            seen, changed_at = now_seen, time.monotonic()


def _has_ownerless_endpoint(node: Node) -> bool:
    """Return whether a publisher or subscription is seen before its node: discovery goes on."""
    return any(
        info.node_name == NODE_NOT_YET_SEEN
        for topic, _ in node.get_topic_names_and_types()
        for infos in (
            node.get_publishers_info_by_topic(topic),
            node.get_subscriptions_info_by_topic(topic),
        )
        for info in infos
    )


def is_hidden(name: str) -> bool:
    """Return whether a part of the name begins with an underscore."""
    return any(part.startswith(HIDDEN_PREFIX) for part in name.split("/"))


def spin_once(node: Node, timeout_s: float) -> None:
    """Wait for one callback and run it; Ctrl-C raises KeyboardInterrupt afterwards.

    Raised inside rclpy it may be swallowed, turn into another error, or leave all callbacks locked
    out, so that nothing can be cancelled any more.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        rclpy.spin_once(node, timeout_sec=timeout_s)
        return
    pressed = []
    signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        rclpy.spin_once(node, timeout_sec=timeout_s)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


def spin_until_done(node: Node, future: Any, timeout_s: float = math.inf) -> bool:
    """Spin the node until the future is done; return False if the timeout came first."""
    deadline = time.monotonic() + timeout_s
    # In short steps: while rclpy waits, Ctrl-C is not noticed.
    while not future.done() and time.monotonic() < deadline:
        spin_once(node, SPIN_STEP_S)
    return bool(future.done())
