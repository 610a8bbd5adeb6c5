# SPDX-License-Identifier: MIT
"""Actions: list, send_goal."""

from __future__ import annotations

import argparse
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient, get_action_names_and_types
from rclpy.node import Node

from ..console import out
from ..errors import CommandError
from ..graph_node import SPIN_STEP_S, add_spin_time, graph_node, spin_once, spin_until_done
from ..interface_types import load_type, split_type
from ..listing import add_list_verb
from ..message_yaml import fill_message, message_to_yaml, read_values
from .service import WAIT_STEP_S, check_offered

STATUS_NAMES = {
    GoalStatus.STATUS_ACCEPTED: "ACCEPTED",
    GoalStatus.STATUS_EXECUTING: "EXECUTING",
    GoalStatus.STATUS_CANCELING: "CANCELING",
    GoalStatus.STATUS_SUCCEEDED: "SUCCEEDED",
    GoalStatus.STATUS_CANCELED: "CANCELED",
    GoalStatus.STATUS_ABORTED: "ABORTED",
}
CANCEL_TIMEOUT_S = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="verb")
    add_list_verb(verbs, "actions", _actions)
    goal = verbs.add_parser(
        "send_goal", help="send a goal and wait for the result; Ctrl-C cancels it"
    )
    goal.add_argument("action_name", help="name, such as /run_episode")
    goal.add_argument("action_type", help="type, such as package/action/Type")
    goal.add_argument("goal", nargs="?", default="{}", help="goal in YAML, such as '{order: 10}'")
    goal.add_argument("-f", "--feedback", action="store_true", help="print feedback")
    add_spin_time(goal)
    goal.set_defaults(run=_send_goal)


def _actions(node: Node) -> dict[str, list[str]]:
    return dict(get_action_names_and_types(node))


def _send_goal(options: argparse.Namespace) -> int:
    action_type = load_type(options.action_type, "action")
    goal = action_type.Goal()
    fill_message(goal, read_values(options.goal))
    name = "/" + options.action_name.removeprefix("/")
    type_name = "/".join(split_type(options.action_type, "action"))
    with graph_node() as node:
        out("Waiting for an action server to become available...")
        check_offered("action", name, type_name, lambda: _actions(node), options.spin_time)
        client = ActionClient(node, action_type, name)
        try:
            while not client.wait_for_server(timeout_sec=WAIT_STEP_S):
                pass
            return _run_goal(node, client, goal, options.feedback)
        finally:
            client.destroy()


def _run_goal(node: Node, client: ActionClient, goal: Any, show_feedback: bool) -> int:
    """Send the goal; return 0 only if it succeeded."""
    out(f"Sending goal:\n{_indented(goal)}")
    shown: list[Any] = []

    def show(feedback: Any) -> None:
        shown.append(feedback)
        out(f"Feedback:\n{_indented(feedback.feedback)}")

    sending = client.send_goal_async(goal, show if show_feedback else None)
    handle = None
    try:
        spin_until_done(node, sending)
        handle = sending.result()
        if handle is None:
            raise CommandError(f"Exception while sending goal: {sending.exception()!r}")
        if not handle.accepted:
            out("Goal was rejected.")
            return 1
        out(f"Goal accepted with ID: {bytes(handle.goal_id.uuid).hex()}\n")
        waiting = handle.get_result_async()
        spin_until_done(node, waiting)
        answer = waiting.result()
        if answer is None:
            raise CommandError(f"Exception while getting result: {waiting.exception()!r}")
        if show_feedback:
            _take_what_has_come(node, shown)
    except KeyboardInterrupt:
        if handle is not None:
            _cancel(node, handle)
        raise
    out(f"Result:\n{_indented(answer.result)}")
    out(f"Goal finished with status: {STATUS_NAMES.get(answer.status, 'UNKNOWN')}")
    return 0 if answer.status == GoalStatus.STATUS_SUCCEEDED else 1


def _cancel(node: Node, handle: Any) -> None:
    out("Canceling goal...")
    canceling = handle.cancel_goal_async()
    answered = spin_until_done(node, canceling, CANCEL_TIMEOUT_S)
    if not answered or not canceling.result().goals_canceling:
        raise CommandError("Failed to cancel goal")
    out("Goal canceled.")


def _take_what_has_come(node: Node, shown: list[Any]) -> None:
    """Show the feedback that came before the result and still waits behind it."""
    before = -1
    while len(shown) > before:
        before = len(shown)
        spin_once(node, SPIN_STEP_S)


def _indented(message: Any) -> str:
    text = message_to_yaml(message)
    return "".join(f"    {line}\n" for line in text.splitlines())
