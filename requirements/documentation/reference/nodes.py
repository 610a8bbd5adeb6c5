# SPDX-License-Identifier: MIT
"""Parameters, topics, services and actions of the nodes, asked of the nodes themselves.

Every node is constructed as its executable would construct it, without discovery, and asked what it
has declared; it is destroyed before it does anything.
"""

from __future__ import annotations

import importlib
import inspect
import os
import tempfile
from pathlib import Path
from typing import Any

from .command_lines import EntryPoint, entry_points

# Of every node of ROS 2: not listed for each.
_USUAL_TOPICS = ("/parameter_events", "/rosout")
_USUAL_SERVICES = (
    *("describe_parameters", "get_parameters", "get_parameter_types", "list_parameters"),
    *("set_parameters", "set_parameters_atomically", "get_type_description"),
)
_LIFECYCLE_SERVICES = (
    *("change_state", "get_state", "get_available_states", "get_available_transitions"),
    "get_transition_graph",
)
_USUAL_PARAMETERS = ("use_sim_time",)
# What a node needs before it can be constructed.
_NEEDED = """
robot_state_publisher:
  ros__parameters:
    robot_description: <robot name="any"><link name="base_link"/></robot>
"""


def described_nodes() -> list[dict[str, Any]]:
    """Every node of our packages, sorted by name. Ends ROS in this process for good."""
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "OFF"
    import rclpy

    with tempfile.TemporaryDirectory() as folder:
        needed = Path(folder) / "needed.yaml"
        needed.write_text(_NEEDED)
        rclpy.init(args=["--ros-args", "--params-file", str(needed), "--log-level", "error"])
        found = [_described(entry) for entry in entry_points() if entry.is_node]
    return sorted(found, key=lambda node: str(node["name"]))


def _described(entry: EntryPoint) -> dict[str, Any]:
    from rclpy.node import Node

    module = importlib.import_module(entry.module)
    kinds: list[Any] = [
        item
        for item in vars(module).values()
        if inspect.isclass(item) and issubclass(item, Node) and item.__module__ == entry.module
    ]
    (kind,) = kinds
    node = kind()
    try:
        return {
            "name": node.get_name(),
            "package": entry.package,
            "executable": entry.name,
            "text": _sentence(module.__doc__ or ""),
            "parameters": _parameters(node),
            "publishes": _streams(node, node.publishers),
            "subscribes": _streams(node, node.subscriptions),
            "services": _services(node),
            "actions": _actions(node),
            "lifecycle": any(s.srv_name.endswith("/change_state") for s in node.services),
        }
    finally:
        node.destroy_node()


def _parameters(node: Any) -> list[dict[str, Any]]:
    names = [name for name in node._parameters if name not in _USUAL_PARAMETERS]
    found = []
    for name, descriptor in zip(names, node.describe_parameters(names), strict=True):
        value = node.get_parameter_or(name).value
        found.append(
            {
                "name": name,
                "default": list(value) if isinstance(value, (list, tuple)) else value,
                "text": descriptor.description,
                "range": descriptor.additional_constraints,
                "read_only": bool(descriptor.read_only),
            }
        )
    return found


def _streams(node: Any, streams: Any) -> list[dict[str, str]]:
    found = []
    for stream in streams:
        topic = stream.topic_name
        if topic in _USUAL_TOPICS or topic.endswith(("/transition_event", "/heartbeat")):
            continue
        kind = stream.msg_type
        found.append(
            {
                "topic": topic.removeprefix("/"),
                "type": f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}",
                "qos": _qos(stream.qos_profile),
            }
        )
    return found


def _qos(profile: Any) -> str:
    words = [profile.reliability.name.lower().replace("_", " ")]
    if profile.durability.name == "TRANSIENT_LOCAL":
        words.append("transient local")
    words.append(f"depth {profile.depth}")
    return ", ".join(words)


def _services(node: Any) -> list[dict[str, str]]:
    found = []
    for service in node.services:
        name = service.srv_name.replace("~", node.get_name()).removeprefix("/")
        if name.split("/")[-1] in (*_USUAL_SERVICES, *_LIFECYCLE_SERVICES):
            continue
        kind = service.srv_type
        found.append(
            {"service": name, "type": f"{kind.__module__.split('.')[0]}/srv/{kind.__name__}"}
        )
    return found


def _actions(node: Any) -> list[dict[str, str]]:
    found = []
    for name, kinds in _served_actions(node):
        found += [{"action": name.removeprefix("/"), "type": kind} for kind in kinds]
    return found


def _served_actions(node: Any) -> list[tuple[str, list[str]]]:
    from rclpy.action import get_action_server_names_and_types_by_node

    served = get_action_server_names_and_types_by_node(node, node.get_name(), node.get_namespace())
    return [(str(name), list(kinds)) for name, kinds in served]


def _sentence(text: str) -> str:
    return " ".join(text.strip().split("\n\n")[0].split())
