# SPDX-License-Identifier: MIT
"""Lifecycle nodes: nodes, get, list, set."""

from __future__ import annotations

import argparse
import math
from typing import Any

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetAvailableTransitions, GetState
from rclpy.node import Node

from ..console import err, out
from ..errors import CommandError
from ..graph_node import add_spin_time, graph_node, is_hidden, settled
from ..node_names import call_service, find_node, names_with_service

LACKING = "lifecycle services"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="verb")
    nodes = verbs.add_parser("nodes", help="list the lifecycle nodes")
    nodes.add_argument("-a", "--all", dest="hidden", action="store_true", help="hidden ones too")
    nodes.add_argument("-c", "--count-nodes", action="store_true", help="only their number")
    nodes.set_defaults(run=_nodes)
    get = verbs.add_parser("get", help="show the state of one lifecycle node or all")
    get.add_argument("node_name", nargs="?", help="name, such as /talker (default: all)")
    get.set_defaults(run=_get)
    listing = verbs.add_parser("list", help="list the transitions that are possible now")
    listing.add_argument("node_name", help="name, such as /talker")
    listing.add_argument("-a", "--all", action="store_true", help="all transitions there are")
    listing.set_defaults(run=_list)
    change = verbs.add_parser("set", help="trigger a transition and wait for its end")
    change.add_argument("node_name", help="name, such as /talker")
    change.add_argument("transition", help="its label or id, such as configure or 1")
    change.set_defaults(run=_set)
    for verb in (get, listing, change):
        verb.add_argument(
            "--include-hidden-nodes", dest="hidden", action="store_true", help="hidden ones too"
        )
    for verb in (nodes, get, listing, change):
        add_spin_time(verb)


def _nodes(options: argparse.Namespace) -> None:
    with graph_node() as node:
        names = _settled_names(node, options)
    if options.count_nodes:
        out(str(len(names)))
        return
    for name in names:
        out(name)


def _get(options: argparse.Namespace) -> None:
    with graph_node() as node:
        if options.node_name is not None:
            out(_state(node, _find(node, options)))
            return
        for name in _settled_names(node, options):
            out(f"{name}: {_state(node, name)}")


def _list(options: argparse.Namespace) -> None:
    with graph_node() as node:
        name = _find(node, options)
        service = "get_transition_graph" if options.all else "get_available_transitions"
        descriptions = _transitions(node, f"{name}/{service}")
    for item in descriptions:
        out(
            f"- {_labelled(item.transition)}\n"
            f"\tStart: {item.start_state.label}\n"
            f"\tGoal: {item.goal_state.label}"
        )


def _set(options: argparse.Namespace) -> int:
    with graph_node() as node:
        name = _find(node, options)
        available = [
            item.transition for item in _transitions(node, f"{name}/get_available_transitions")
        ]
        request = ChangeState.Request(transition=_chosen(available, options.transition))
        # A transition takes as long as it takes (loading a model, homing): no deadline.
        answer = call_service(node, ChangeState, f"{name}/change_state", request, math.inf)
    if not answer.success:
        err("Transitioning failed")
        return 1
    out("Transitioning successful")
    return 0


def _chosen(available: list[Transition], wanted: str) -> Transition:
    for transition in available:
        if transition.label == wanted:
            return transition
    for transition in available:
        if str(transition.id) == wanted:
            return transition
    raise CommandError(
        "Unknown transition requested, available ones are:"
        + "".join(f"\n- {_labelled(transition)}" for transition in available)
    )


def _lifecycle_names(node: Node) -> list[str]:
    return names_with_service(node, "get_state", "lifecycle_msgs/srv/GetState")


def _settled_names(node: Node, options: argparse.Namespace) -> list[str]:
    names = settled(node, lambda: _lifecycle_names(node), options.spin_time)
    return [name for name in names if options.hidden or not is_hidden(name)]


def _find(node: Node, options: argparse.Namespace) -> str:
    return find_node(node, options.node_name, _lifecycle_names, options.spin_time, LACKING)


def _state(node: Node, name: str) -> str:
    answer = call_service(node, GetState, f"{name}/get_state", GetState.Request())
    return _labelled(answer.current_state)


def _transitions(node: Node, service: str) -> list[Any]:
    request = GetAvailableTransitions.Request()
    answer = call_service(node, GetAvailableTransitions, service, request)
    return list(answer.available_transitions)


def _labelled(item: Any) -> str:
    return f"{item.label} [{item.id}]"
