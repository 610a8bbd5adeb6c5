# SPDX-License-Identifier: MIT
"""The order of bringing lifecycle nodes up and down, and what a refusal or a death does to it."""

from __future__ import annotations

import asyncio

import pytest

from equi_ros.lifecycle.bringup import (
    ACTIVE,
    FINALIZED,
    INACTIVE,
    UNCONFIGURED,
    UNKNOWN,
    BringUpFailed,
    BringUpPlan,
    bring_down,
    bring_up,
)

NODES = ("eye", "brain", "arm")
# The lifecycle of ROS 2 nodes (design.ros2.org, "Managed nodes").
LEADS_TO = {
    (UNCONFIGURED, "configure"): INACTIVE,
    (INACTIVE, "activate"): ACTIVE,
    (ACTIVE, "deactivate"): INACTIVE,
    (INACTIVE, "cleanup"): UNCONFIGURED,
    (UNCONFIGURED, "shutdown"): FINALIZED,
    (INACTIVE, "shutdown"): FINALIZED,
    (ACTIVE, "shutdown"): FINALIZED,
}


class Graph:
    """Nodes that make every transition of the lifecycle, but those that they refuse."""

    def __init__(self, refuses: tuple[tuple[str, str], ...] = (), dead: tuple[str, ...] = ()):
        self.states = {name: UNKNOWN if name in dead else UNCONFIGURED for name in NODES}
        self.refuses = refuses
        self.done: list[tuple[str, str]] = []

    async def get_state(self, node: str) -> str:
        return self.states[node]

    async def change_state(self, node: str, transition: str) -> bool:
        if (node, transition) in self.refuses:
            return False
        self.states[node] = LEADS_TO[self.states[node], transition]
        self.done.append((node, transition))
        return True


def test_every_node_is_configured_before_the_first_is_activated_and_the_arm_comes_last() -> None:
    graph = Graph()
    asyncio.run(bring_up(BringUpPlan(NODES), graph))
    assert graph.done == [
        ("eye", "configure"),
        ("brain", "configure"),
        ("arm", "configure"),
        ("eye", "activate"),
        ("brain", "activate"),
        ("arm", "activate"),
    ]


def test_a_node_that_a_person_activates_is_only_configured() -> None:
    graph = Graph()
    asyncio.run(bring_up(BringUpPlan(NODES, manual_activation=("arm",)), graph))
    assert graph.states == {"eye": ACTIVE, "brain": ACTIVE, "arm": INACTIVE}


def test_a_refusal_while_configuring_names_the_node_and_nothing_was_activated() -> None:
    graph = Graph(refuses=(("brain", "configure"),))
    with pytest.raises(BringUpFailed, match="brain did not configure") as failure:
        asyncio.run(bring_up(BringUpPlan(NODES), graph))
    assert failure.value.node == "brain"
    assert ("eye", "activate") not in graph.done


def test_a_node_that_is_not_there_is_named() -> None:
    with pytest.raises(BringUpFailed, match="arm does not answer"):
        asyncio.run(bring_up(BringUpPlan(NODES), Graph(dead=("arm",))))


def test_nodes_that_are_up_already_are_left_alone() -> None:
    graph = Graph()
    graph.states["eye"] = ACTIVE
    asyncio.run(bring_up(BringUpPlan(NODES), graph))
    assert not [step for step in graph.done if step[0] == "eye"]


def test_no_further_node_is_started_once_another_has_failed() -> None:
    graph = Graph()
    with pytest.raises(BringUpFailed, match="another node has failed"):
        asyncio.run(bring_up(BringUpPlan(NODES), graph, lambda: len(graph.done) < 4))
    assert graph.states["brain"] == INACTIVE


def test_the_arm_is_stopped_first_and_every_node_ends_finalized() -> None:
    graph = Graph()
    asyncio.run(bring_up(BringUpPlan(NODES), graph))
    graph.done.clear()
    assert asyncio.run(bring_down(NODES, graph)) == []
    assert graph.done[:3] == [
        ("arm", "deactivate"),
        ("brain", "deactivate"),
        ("eye", "deactivate"),
    ]
    assert set(graph.states.values()) == {FINALIZED}


@pytest.mark.parametrize(
    ("refuses", "dead", "missing"),
    [
        ((), ("arm",), ["arm"]),
        ((("brain", "deactivate"),), (), ["brain"]),
        ((("brain", "shutdown"),), (), ["brain"]),
    ],
)
def test_one_node_that_cannot_be_brought_down_does_not_keep_the_others_up(
    refuses: tuple[tuple[str, str], ...], dead: tuple[str, ...], missing: list[str]
) -> None:
    graph = Graph(refuses, dead)
    for name in NODES:
        if name not in dead:
            graph.states[name] = ACTIVE
    assert asyncio.run(bring_down(NODES, graph)) == missing
    others = {name: state for name, state in graph.states.items() if name not in missing}
    assert set(others.values()) == {FINALIZED}


@pytest.mark.parametrize(
    ("nodes", "manual", "word"),
    [((), (), "at least one"), (("a", "a"), (), "twice"), (("a",), ("b",), "manual_activation")],
)
def test_a_plan_that_makes_no_sense_is_refused(
    nodes: tuple[str, ...], manual: tuple[str, ...], word: str
) -> None:
    with pytest.raises(ValueError, match=word):
        BringUpPlan(nodes, manual)
