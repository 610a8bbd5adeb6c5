# SPDX-License-Identifier: MIT
"""Subscriptions that accept one publisher only, and say so when there is another.

A message that cannot be the expected publisher's is dropped, counted and named; so is one that its
callback refuses as malformed. Nothing that arrives ends the node.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from equi_ros.message_checks import MalformedMessage
from equi_ros.parameters import declare
from equi_ros.publisher_check import Endpoint, MessageOrder, publisher_problem

_POLL_PERIOD_S = 0.1
"""How often the graph is asked [s]."""
_LOG_PERIOD_S = 2.0


class PublisherGuard:
    """The streams of one node, each with its one publisher."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._expected: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._problems: dict[str, str] = {}
        self._clear_since_ns: dict[str, int] = {}
        """Since when a topic has one publisher again; what came before may be anybody's."""
        self._polled_s = -_POLL_PERIOD_S

    def subscribe(
        self,
        kind: Any,
        topic: str,
        callback: Callable[[Any], None],
        profile: QoSProfile,
        *,
        publisher: str = "",
        raw: bool = False,
        believe_all: bool = False,
    ) -> Subscription:
        """Subscribe to what one publisher says.

        Args:
            kind: message class.
            topic: name, as for create_subscription.
            callback: takes the message; may raise MalformedMessage to refuse it.
            profile: quality of service.
            publisher: name of the node that publishes it, in this node's namespace; empty: any
                node, but one only. The parameter `publishers.<topic>` names another.
            raw: hand over the bytes.
            believe_all: hand over every message, also while there are two publishers: for states
                whose worst case must be believed, such as a fault.
        """
        if publisher:
            parameter = f"publishers.{topic.strip('~/').replace('/', '.')}"
            words = f"node that publishes {topic}; nobody else is heard"
            publisher = str(declare(self._node, parameter, publisher, words))
            if not publisher:
                raise ValueError(f"parameter {parameter} is empty; name the node that publishes it")
        order = MessageOrder()

        def on_message(message: Any, info: Mapping[str, Any]) -> None:
            if not believe_all and self._is_foreign(subscription, order, info):
                return
            try:
                callback(message)
            except MalformedMessage as error:
                self._drop(subscription.topic_name, "malformed", f"dropped: {error}")

        # rclpy takes callbacks with the message's information too; its type says otherwise.
        callable_: Any = on_message
        subscription = self._node.create_subscription(kind, topic, callable_, profile, raw=raw)
        self._expected[subscription.topic_name] = self._full_name(publisher)
        return subscription

    def claim(self, publisher: Publisher) -> None:
        """Watch a topic on which this node alone publishes."""
        self._expected[publisher.topic_name] = self._node.get_fully_qualified_name()

    def problems(self) -> list[str]:
        """Topics with another or a second publisher, one sentence each; asks the graph."""
        now_s = time.monotonic()
        if now_s - self._polled_s >= _POLL_PERIOD_S:
            self._polled_s = now_s
            problems = {
                topic: publisher_problem(topic, expected, self._endpoints(topic))
                for topic, expected in self._expected.items()
            }
            for topic, problem in problems.items():
                if problem and problem != self._problems.get(topic):
                    self._node.get_logger().error(problem)
                if self._problems.get(topic) and not problem:
                    self._clear_since_ns[topic] = time.time_ns()
            self._problems = problems
        return [problem for problem in self._problems.values() if problem]

    def counts(self) -> dict[str, str]:
        """Messages dropped so far, by topic and reason, for diagnostics."""
        return {f"dropped {name}": str(count) for name, count in self._counts.items()}

    def _is_foreign(
        self, subscription: Subscription, order: MessageOrder, info: Mapping[str, Any]
    ) -> bool:
        topic = subscription.topic_name
        # Only what this subscription is matched with can have sent it: exact, and cheap to ask.
        if subscription.get_publisher_count() > 1:
            self._polled_s = -_POLL_PERIOD_S
            self._clear_since_ns[topic] = time.time_ns()
            self._drop(topic, "second_publisher", "dropped: there is a second publisher")
            return True
        received_ns = info.get("received_timestamp") or math.inf
        if received_ns < self._clear_since(topic):
            self._drop(topic, "second_publisher", "dropped: there was a second publisher")
            return True
        number = info.get("publication_sequence_number")
        grows = order.last is None or (number is not None and number > order.last)
        endpoints = [] if grows and order.knows_publisher else self._endpoints(topic)
        if not order.continues(number, endpoints):
            self._drop(topic, "foreign", "dropped: its number is not the next of the publisher's")
            return True
        problem = publisher_problem(topic, self._expected[topic], endpoints)
        problem = problem or self._problems.get(topic, "")
        if problem:
            self._drop(topic, "foreign_publisher", f"dropped: {problem}")
            return True
        return False

    def _clear_since(self, topic: str) -> int:
        """Since when there is one publisher [ns]; from now on if the clock was set back since."""
        since_ns = min(self._clear_since_ns.get(topic, 0), time.time_ns())
        if topic in self._clear_since_ns:
            self._clear_since_ns[topic] = since_ns
        return since_ns

    def _drop(self, topic: str, reason: str, text: str) -> None:
        self._counts[f"{topic} {reason}"] += 1
        self._node.get_logger().warning(f"{topic}: {text}", throttle_duration_sec=_LOG_PERIOD_S)

    def _endpoints(self, topic: str) -> list[Endpoint]:
        return [
            Endpoint(
                f"{info.node_namespace.rstrip('/')}/{info.node_name}",
                bytes(info.endpoint_gid).hex(),
            )
            for info in self._node.get_publishers_info_by_topic(topic)
        ]

    def _full_name(self, name: str) -> str:
        if not name or name.startswith("/"):
            return name
        return f"{self._node.get_namespace().rstrip('/')}/{name}"
