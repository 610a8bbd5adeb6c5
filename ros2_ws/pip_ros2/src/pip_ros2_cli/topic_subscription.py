# SPDX-License-Identifier: MIT
"""A subscription that is compatible with the topic's publishers, also with those that come later.

A topic may be known through a subscriber only. A profile chosen then fits no best-effort publisher
and gets nothing from a latched one, without a word; so the publishers decide, and the subscription
is made anew when others come that need another profile.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from .graph_node import SPIN_STEP_S, spin_once, wait_for
from .qos_options import choose_qos


def published_types(node: Node, topic: str, timeout_s: float) -> list[str]:
    """Return the types that publishers of a topic have, as soon as one is seen."""
    infos = wait_for(lambda: node.get_publishers_info_by_topic(topic), timeout_s)
    return sorted({info.topic_type for info in infos})


def known_types(node: Node, topic: str) -> list[str]:
    """Return the types of a topic now, those of subscribers included."""
    return dict(node.get_topic_names_and_types()).get(topic, [])


class TopicSubscription:
    """Subscribes with the QoS that the publishers and the user's options ask for."""

    def __init__(
        self,
        node: Node,
        topic: str,
        message_type: Any,
        callback: Callable[[Any], None],
        options: argparse.Namespace,
        *,
        raw: bool = False,
    ) -> None:
        self._node = node
        self._topic = topic
        self._make = lambda qos: node.create_subscription(
            message_type, topic, callback, qos, raw=raw
        )
        self._options = options
        self.qos = choose_qos(node, topic, options)
        self._subscription = self._make(self.qos)

    def spin_once(self) -> None:
        """Wait shortly for a message; first change the QoS if the publishers now need it."""
        qos = choose_qos(self._node, self._topic, self._options)
        if (qos.reliability, qos.durability) != (self.qos.reliability, self.qos.durability):
            self._node.destroy_subscription(self._subscription)
            self.qos, self._subscription = qos, self._make(qos)
        spin_once(self._node, SPIN_STEP_S)
