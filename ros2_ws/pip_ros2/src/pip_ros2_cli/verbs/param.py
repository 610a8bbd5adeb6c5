# SPDX-License-Identifier: MIT
"""Parameters of running nodes: list, get, set."""

from __future__ import annotations

import argparse
from typing import Any

import yaml
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.parameter_client import AsyncParameterClient

from ..console import err, out
from ..errors import CommandError
from ..graph_node import add_spin_time, graph_node, is_hidden, settled, spin_until_done, wait_for
from .node import node_names

ANSWER_TIMEOUT_S = 5.0
LABELS = {
    ParameterType.PARAMETER_BOOL: "Boolean value is:",
    ParameterType.PARAMETER_INTEGER: "Integer value is:",
    ParameterType.PARAMETER_DOUBLE: "Double value is:",
    ParameterType.PARAMETER_STRING: "String value is:",
    ParameterType.PARAMETER_BYTE_ARRAY: "Byte values are:",
    ParameterType.PARAMETER_BOOL_ARRAY: "Boolean values are:",
    ParameterType.PARAMETER_INTEGER_ARRAY: "Integer values are:",
    ParameterType.PARAMETER_DOUBLE_ARRAY: "Double values are:",
    ParameterType.PARAMETER_STRING_ARRAY: "String values are:",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="verb")
    listing = verbs.add_parser("list", help="list the parameters of one node or all")
    listing.add_argument("node_name", nargs="?", help="name, such as /talker")
    listing.add_argument("--include-hidden-nodes", action="store_true", help="of hidden nodes too")
    add_spin_time(listing)
    listing.set_defaults(run=_list)
    get = verbs.add_parser("get", help="show the value of a parameter")
    get.add_argument("node_name", help="name, such as /talker")
    get.add_argument("parameter_name", help="name of the parameter")
    get.add_argument("--hide-type", action="store_true", help="only the value")
    add_spin_time(get)
    get.set_defaults(run=_get)
    setting = verbs.add_parser("set", help="change a parameter")
    setting.add_argument("node_name", help="name, such as /talker")
    setting.add_argument("parameter_name", help="name of the parameter")
    setting.add_argument("value", help="the value in YAML: 5, 0.5, true, text, [1, 2]")
    add_spin_time(setting)
    setting.set_defaults(run=_set)


def _list(options: argparse.Namespace) -> int:
    with graph_node() as node:
        if options.node_name is not None:
            name = _find_node(node, options.node_name, options.spin_time)
            for parameter in _names_of(node, name):
                out(f"  {parameter}")
            return 0
        names = settled(node, lambda: _names_with_services(node), options.spin_time)
        for name in names:
            if options.include_hidden_nodes or not is_hidden(name):
                parameters = _names_of(node, name)
                out(f"{name}:")
                for parameter in parameters:
                    out(f"  {parameter}")
    return 0


def _get(options: argparse.Namespace) -> int:
    with graph_node() as node:
        name = _find_node(node, options.node_name, options.spin_time)
        value = _present_value(node, name, options.parameter_name)
        if value.type == ParameterType.PARAMETER_NOT_SET:
            known = ", ".join(_names_of(node, name))
            raise CommandError(
                f"Parameter not set: '{options.parameter_name}'. Parameters of {name}: {known}"
            )
    shown = _shown(value)
    out(str(shown) if options.hide_type else f"{LABELS[value.type]} {shown}")
    return 0


def _set(options: argparse.Namespace) -> int:
    with graph_node() as node:
        name = _find_node(node, options.node_name, options.spin_time)
        # The node knows the type: '5' for a double is 5.0, for a string it is text.
        wanted_type = _present_value(node, name, options.parameter_name).type
        message = ParameterMessage(
            name=options.parameter_name, value=_value(options.value, wanted_type)
        )
        answer = _answer(node, _client(node, name).set_parameters([message]), name)
    result = answer.results[0]
    if not result.successful:
        err(f"Setting parameter failed: {result.reason}")
        return 1
    out(f"Set parameter successful{': ' + result.reason if result.reason else ''}")
    return 0


def _names_with_services(node: Node) -> list[str]:
    services = {name for name, _ in node.get_service_names_and_types()}
    return [name for name in node_names(node) if f"{name}/list_parameters" in services]


def _find_node(node: Node, given: str, timeout_s: float) -> str:
    name = given if given.startswith("/") else f"/{given}"
    if not wait_for(lambda: name in _names_with_services(node), timeout_s):
        if name in node_names(node):
            raise CommandError(f"Node '{name}' has no parameter services")
        seen = ", ".join(item for item in node_names(node) if not is_hidden(item)) or "none"
        raise CommandError(f"Node not found: '{name}'. Nodes seen: {seen}")
    return name


def _client(node: Node, name: str) -> AsyncParameterClient:
    client = AsyncParameterClient(node, name)
    if not client.wait_for_services(timeout_sec=ANSWER_TIMEOUT_S):
        raise CommandError(f"the parameter services of node '{name}' do not become available")
    return client


def _answer(node: Node, future: Any, name: str) -> Any:
    if not spin_until_done(node, future, ANSWER_TIMEOUT_S):
        raise CommandError(
            f"node '{name}' did not answer within {ANSWER_TIMEOUT_S:g} s; does it spin?"
        )
    return future.result()


def _present_value(node: Node, name: str, parameter: str) -> ParameterValue:
    answer = _answer(node, _client(node, name).get_parameters([parameter]), name)
    return answer.values[0] if answer.values else ParameterValue()


def _names_of(node: Node, name: str) -> list[str]:
    answer = _answer(node, _client(node, name).list_parameters(), name)
    return sorted(answer.result.names)


def _shown(value: ParameterValue) -> Any:
    python_value = parameter_value_to_python(value)
    return python_value.tolist() if hasattr(python_value, "tolist") else python_value


def _value(text: str, wanted_type: int) -> ParameterValue:
    """Return the text as a parameter value, of the type that the parameter has already."""
    if wanted_type == ParameterType.PARAMETER_STRING:
        try:
            read = yaml.safe_load(text)
        except yaml.YAMLError:
            read = text
        return Parameter("", value=read if isinstance(read, str) else text).get_parameter_value()
    try:
        read = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CommandError(f"the value '{text}' is not valid YAML: {error}") from None
    if wanted_type == ParameterType.PARAMETER_DOUBLE:
        read = _as_float(read)
    elif wanted_type == ParameterType.PARAMETER_DOUBLE_ARRAY and isinstance(read, list):
        read = [_as_float(item) for item in read]
    if read is None:
        read = ""
    try:
        return Parameter("", value=read).get_parameter_value()
    except (TypeError, ValueError) as error:
        raise CommandError(
            f"'{text}' reads as {read!r}, which no parameter can hold: {error}"
        ) from None


def _as_float(read: Any) -> Any:
    if isinstance(read, int) and not isinstance(read, bool):
        return float(read)
    if isinstance(read, str):  # YAML 1.1 reads 1e-3 (without a dot) as text
        try:
            return float(read)
        except ValueError:
            return read
    return read
