# SPDX-License-Identifier: MIT
"""Who may publish on a topic: one publisher, of the expected node."""

from __future__ import annotations

import pytest

from equi_ros.message_checks import MalformedMessage, require_past, require_plausible
from equi_ros.publisher_check import UNKNOWN_NODE, Endpoint, MessageOrder, publisher_problem

POLICY = Endpoint("/policy", "aa01")
STRANGER = Endpoint("/stranger", "bb02")
SECOND_POLICY = Endpoint("/policy", "cc03")


@pytest.mark.parametrize("endpoints", [[], [POLICY]])
def test_nobody_and_the_expected_node_alone_are_fine(endpoints):
    assert publisher_problem("/delta_command", "/policy", endpoints) == ""


def test_a_second_node_of_the_same_name_is_named_by_its_gid():
    problem = publisher_problem("/delta_command", "/policy", [POLICY, SECOND_POLICY])
    assert problem.startswith("second_publisher: 2 publishers on /delta_command")
    assert "aa01" in problem
    assert "cc03" in problem


def test_another_node_in_place_of_the_expected_one_is_named():
    problem = publisher_problem("/delta_command", "/policy", [STRANGER])
    assert problem.startswith("foreign_publisher: /delta_command is published by /stranger")
    assert publisher_problem("/cloud", "", [STRANGER]) == "", "any node may be the camera"


def test_a_node_that_has_not_introduced_itself_yet_is_waited_for():
    assert publisher_problem("/t", "/policy", [Endpoint(f"/x/{UNKNOWN_NODE}", "aa01")]) == ""


def test_a_message_that_does_not_continue_the_publishers_numbers_is_another_ones():
    order = MessageOrder()
    assert order.continues(1, [POLICY])
    assert order.continues(2, [])
    assert order.continues(7, []), "messages may be lost"
    # The stranger has sent one message and is gone again: only the number shows it.
    assert not order.continues(1, [POLICY])
    assert not order.continues(7, [POLICY])
    assert order.continues(8, [])


def test_a_publisher_that_was_started_anew_counts_from_the_beginning():
    order = MessageOrder()
    assert order.continues(500, [POLICY])
    assert order.continues(1, [SECOND_POLICY])
    assert order.continues(2, [])
    assert not order.continues(1, [SECOND_POLICY])


def test_a_middleware_without_numbers_is_judged_by_the_graph_alone():
    assert MessageOrder().continues(None, [POLICY])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300])
def test_numbers_that_nobody_can_mean_are_malformed(value):
    with pytest.raises(MalformedMessage, match="translation"):
        require_plausible("translation", (0.0, value, 0.0), 1.0)


def test_what_has_happened_is_not_from_the_future():
    from types import SimpleNamespace

    require_past("header.stamp", SimpleNamespace(sec=10, nanosec=0), 10_000_000_000)
    with pytest.raises(MalformedMessage, match="in the future"):
        require_past("header.stamp", SimpleNamespace(sec=2_000_000_000, nanosec=0), 10**18)
