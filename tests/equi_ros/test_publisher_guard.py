# SPDX-License-Identifier: MIT
"""The publisher guard over real ROS: the expected node is heard, a stranger is dropped by name."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from families import wait_until

pytestmark = [pytest.mark.ros, pytest.mark.timeout(120)]
PATIENCE_S = 30.0


@pytest.fixture
def guarded(ros_probe: Any) -> Any:
    """A guard in the probe's node, what it heard, and nodes that talk to it."""
    import rclpy
    from std_msgs.msg import String

    from equi_ros.message_checks import MalformedMessage
    from equi_ros.publisher_guard import PublisherGuard

    heard: list[str] = []

    def on_word(message: String) -> None:
        if message.data == "nonsense":
            raise MalformedMessage("data is nonsense")
        heard.append(message.data)

    guard = PublisherGuard(ros_probe.node)
    guard.subscribe(String, "/word", on_word, 10, publisher="friend")
    nodes: dict[str, Any] = {}

    def publisher(name: str) -> Any:
        nodes[name] = rclpy.create_node(name, context=ros_probe.node.context)
        made = nodes[name].create_publisher(String, "/word", 10)
        wait_until(lambda: made.get_subscription_count() > 0, PATIENCE_S, "it is heard")
        return lambda text: made.publish(String(data=text))

    yield guard, heard, publisher, nodes
    for node in nodes.values():
        node.destroy_node()


def test_the_expected_node_is_heard_and_nonsense_is_counted(guarded: Any) -> None:
    guard, heard, publisher, _ = guarded
    say = publisher("friend")
    for word in ("one", "nonsense", "two"):
        say(word)
    wait_until(lambda: heard == ["one", "two"], PATIENCE_S, "both words")
    assert guard.counts() == {"dropped /word malformed": "1"}
    assert guard.problems() == []


def test_beside_a_second_publisher_nobody_is_heard_and_both_are_named(guarded: Any) -> None:
    guard, heard, publisher, nodes = guarded
    say = publisher("friend")
    say("before")
    wait_until(lambda: heard == ["before"], PATIENCE_S, "the first word")
    stranger = publisher("stranger")
    wait_until(lambda: guard.problems(), PATIENCE_S, "the second publisher is seen")
    for _ in range(50):
        stranger("forged")
    say("beside him")
    wait_until(lambda: guard.counts(), PATIENCE_S, "they are dropped")
    assert heard == ["before"]
    assert "/stranger" in guard.problems()[0]
    assert "/friend" in guard.problems()[0]

    nodes.pop("stranger").destroy_node()
    wait_until(lambda: not guard.problems(), PATIENCE_S, "he is gone")
    say("alone again")
    wait_until(lambda: heard == ["before", "alone again"], PATIENCE_S, "the friend is heard again")


class Street:
    """A guard on a graph that the test makes up: who publishes, and what arrives when."""

    def __init__(self) -> None:
        from equi_ros.publisher_guard import PublisherGuard

        friend, self.stranger = (
            SimpleNamespace(node_name=name, node_namespace="/", endpoint_gid=[number] * 16)
            for number, name in enumerate(("friend", "stranger"))
        )
        self.present = [friend]
        node = MagicMock()
        node.get_publishers_info_by_topic.side_effect = lambda _: self.present
        node.create_subscription.return_value = SimpleNamespace(
            topic_name="/word", get_publisher_count=lambda: len(self.present)
        )
        self.heard: list[str] = []
        self.guard = PublisherGuard(node)
        self.guard.subscribe(str, "/word", self.heard.append, 10)
        self._deliver = node.create_subscription.call_args.args[2]

    def word(self, text: str, number: int, received_ns: int) -> None:
        info = {"publication_sequence_number": number, "received_timestamp": received_ns}
        self._deliver(text, info)


@pytest.fixture
def street(monkeypatch: pytest.MonkeyPatch) -> Street:
    monkeypatch.setattr("equi_ros.publisher_guard._POLL_PERIOD_S", 0.0)
    return Street()


def test_what_a_stranger_has_sent_is_not_heard_after_he_has_left(street: Street) -> None:
    # On a busy machine his messages still wait to be taken when he is gone already.
    street.word("before", 1, time.time_ns())
    street.present.append(street.stranger)
    assert "/stranger" in street.guard.problems()[0]
    while_both_ns = time.time_ns()
    street.present.pop()
    assert street.guard.problems() == []
    street.word("forged", 50, while_both_ns)
    street.word("alone again", 2, time.time_ns())

    assert street.heard == ["before", "alone again"]
    assert street.guard.counts() == {"dropped /word second_publisher": "1"}


def test_a_clock_that_was_set_back_does_not_silence_the_friend(
    street: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the old code nobody was heard until the clock had caught up."""
    now_ns = [2_000_000_000]
    monkeypatch.setattr("equi_ros.publisher_guard.time.time_ns", lambda: now_ns[0])
    street.present.append(street.stranger)
    assert street.guard.problems()
    street.present.pop()
    assert street.guard.problems() == []

    now_ns[0] = 1_000_000_000
    street.word("waited since before", 1, 999_000_000)
    now_ns[0] = 1_001_000_000
    street.word("after it", 2, 1_001_000_000)

    assert street.heard == ["after it"]


def test_another_node_in_the_expected_ones_place_is_not_heard(guarded: Any) -> None:
    guard, heard, publisher, _ = guarded
    say = publisher("stranger")
    wait_until(lambda: guard.problems(), PATIENCE_S, "he is seen")
    say("forged")
    wait_until(lambda: guard.counts(), PATIENCE_S, "it is dropped")
    assert heard == []
    assert guard.problems()[0].startswith("foreign_publisher")


def test_the_check_cannot_be_switched_off_by_an_empty_name(ros_probe: Any) -> None:
    import rclpy
    from rclpy.parameter import Parameter
    from std_msgs.msg import String

    from equi_ros.publisher_guard import PublisherGuard

    node = rclpy.create_node(
        "careless",
        context=ros_probe.node.context,
        parameter_overrides=[Parameter("publishers.word", value="")],
    )
    with pytest.raises(ValueError, match=r"publishers\.word is empty"):
        PublisherGuard(node).subscribe(String, "word", print, 10, publisher="friend")
    node.destroy_node()
