# SPDX-License-Identifier: MIT
"""Who may publish on a topic: one publisher, of the expected node. The rule, without a graph.

rclpy does not say which publisher sent a message. What it knows is the graph (node name and GID of
every publisher of a topic) and a sequence number that each publisher counts for itself. Both
together tell a stranger: he is a second publisher while he is there, and his numbers do not
continue those of the first one. Names and numbers can be forged by who tries hard; keys (SROS 2)
cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

UNKNOWN_NODE = "_NODE_NAME_UNKNOWN_"
"""What the graph says of a publisher whose node has not introduced itself yet."""


@dataclass(frozen=True)
class Endpoint:
    """One publisher on the graph."""

    node: str
    """Full name of its node, such as /policy."""
    gid: str
    """Its globally unique id, in hexadecimal."""

    def __str__(self) -> str:
        return f"{self.node} ({self.gid[-8:]})"


def publisher_problem(topic: str, expected: str, endpoints: Sequence[Endpoint]) -> str:
    """What is wrong with the publishers of a topic; empty if nothing is.

    Args:
        topic: full name of the topic, for the message.
        expected: full name of the node that publishes there; empty: any node, but one only.
        endpoints: the publishers that the graph shows.
    """
    if len(endpoints) > 1:
        names = ", ".join(sorted(str(endpoint) for endpoint in endpoints))
        return (
            f"second_publisher: {len(endpoints)} publishers on {topic}: {names}; exactly one is "
            "allowed: end the others (one that was killed is forgotten after some seconds)"
        )
    for endpoint in endpoints:
        if expected and endpoint.node != expected and not endpoint.node.endswith(UNKNOWN_NODE):
            return (
                f"foreign_publisher: {topic} is published by {endpoint.node}, not by {expected}; "
                "end that node, or name it in the parameter publishers.<topic>"
            )
    return ""


class MessageOrder:
    """Sequence numbers of one topic's publisher: they only grow, until it is replaced."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._gid = ""

    def continues(self, number: int | None, endpoints: Sequence[Endpoint]) -> bool:
        """Whether a message is the publisher's own; False: another one has sent it.

        Args:
            number: sequence number that the sender counted; None where the middleware has none.
            endpoints: the publishers at present; only looked at when the number does not grow.
        """
        if number is None:
            return True
        if self._last is not None and number <= self._last:
            gids = [endpoint.gid for endpoint in endpoints]
            if gids == [self._gid]:
                return False
            self._gid = gids[0] if len(gids) == 1 else ""
        elif not self._gid and len(endpoints) == 1:
            self._gid = endpoints[0].gid
        self._last = number
        return True

    @property
    def knows_publisher(self) -> bool:
        """Whether the publisher's GID is known; else `continues` wants to see the endpoints."""
        return bool(self._gid)

    @property
    def last(self) -> int | None:
        """The newest number."""
        return self._last
