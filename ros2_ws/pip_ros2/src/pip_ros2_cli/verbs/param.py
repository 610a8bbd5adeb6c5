# SPDX-License-Identifier: MIT
"""Parameters of running nodes: list, get, set, describe, dump, load."""

from __future__ import annotations

import argparse
from typing import Any

import yaml
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterDescriptor, ParameterType, ParameterValue
from rclpy.parameter import Parameter

from ..console import err, out
from ..errors import CommandError
from ..graph_node import add_spin_time, graph_node, is_hidden, settled
from ..parameter_file import parameters_for
from ..remote_parameters import RemoteParameters, nodes_with_parameters, shown

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
TYPE_NAMES = {
    ParameterType.PARAMETER_NOT_SET: "not set",
    ParameterType.PARAMETER_BOOL: "boolean",
    ParameterType.PARAMETER_INTEGER: "integer",
    ParameterType.PARAMETER_DOUBLE: "double",
    ParameterType.PARAMETER_STRING: "string",
    ParameterType.PARAMETER_BYTE_ARRAY: "byte array",
    ParameterType.PARAMETER_BOOL_ARRAY: "boolean array",
    ParameterType.PARAMETER_INTEGER_ARRAY: "integer array",
    ParameterType.PARAMETER_DOUBLE_ARRAY: "double array",
    ParameterType.PARAMETER_STRING_ARRAY: "string array",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="verb")
    listing = verbs.add_parser("list", help="list the parameters of one node or all")
    listing.add_argument("node_name", nargs="?", help="name, such as /talker")
    listing.add_argument("--include-hidden-nodes", action="store_true", help="of hidden nodes too")
    add_spin_time(listing)
    listing.set_defaults(run=_list)

    def add(name: str, text: str, run: Any) -> argparse.ArgumentParser:
        verb: argparse.ArgumentParser = verbs.add_parser(name, help=text)
        verb.add_argument("node_name", help="name, such as /talker")
        add_spin_time(verb)
        verb.set_defaults(run=run)
        return verb

    get = add("get", "show the value of a parameter", _get)
    get.add_argument("parameter_name", help="name of the parameter")
    get.add_argument("--hide-type", action="store_true", help="only the value")
    setting = add("set", "change a parameter", _set)
    setting.add_argument("parameter_name", help="name of the parameter")
    setting.add_argument("value", help="the value in YAML: 5, 0.5, true, text, [1, 2]")
    describe = add("describe", "show type, description and allowed values", _describe)
    describe.add_argument("parameter_names", nargs="+", help="names of the parameters")
    add("dump", "print all parameters of a node as a parameter file", _dump)
    load = add("load", "set the parameters that a parameter file gives for a node", _load)
    load.add_argument("parameter_file", help="YAML file, such as dump prints")
    load.add_argument(
        "--no-use-wildcard", action="store_true", help="leave out what the file gives for '/**'"
    )


def _list(options: argparse.Namespace) -> int:
    with graph_node() as node:
        if options.node_name is not None:
            for parameter in RemoteParameters(node, options.node_name, options.spin_time).names():
                out(f"  {parameter}")
            return 0
        names = settled(node, lambda: nodes_with_parameters(node), options.spin_time)
        for name in names:
            if options.include_hidden_nodes or not is_hidden(name):
                parameters = RemoteParameters(node, name, options.spin_time).names()
                out(f"{name}:")
                for parameter in parameters:
                    out(f"  {parameter}")
    return 0


def _get(options: argparse.Namespace) -> int:
    with graph_node() as node:
        remote = RemoteParameters(node, options.node_name, options.spin_time)
        value = remote.value(options.parameter_name)
        if value.type == ParameterType.PARAMETER_NOT_SET:
            known = ", ".join(remote.names())
            raise CommandError(
                f"Parameter not set: '{options.parameter_name}'. "
                f"Parameters of {remote.node_name}: {known}"
            )
    out(str(shown(value)) if options.hide_type else f"{LABELS[value.type]} {shown(value)}")
    return 0


def _set(options: argparse.Namespace) -> int:
    with graph_node() as node:
        remote = RemoteParameters(node, options.node_name, options.spin_time)
        # The node knows the type: '5' for a double is 5.0, for a string it is text.
        wanted_type = remote.value(options.parameter_name).type
        message = ParameterMessage(
            name=options.parameter_name, value=_value(options.value, wanted_type)
        )
        result = remote.set([message])[0]
    if not result.successful:
        err(f"Setting parameter failed: {result.reason}")
        return 1
    out(f"Set parameter successful{': ' + result.reason if result.reason else ''}")
    return 0


def _describe(options: argparse.Namespace) -> int:
    with graph_node() as node:
        remote = RemoteParameters(node, options.node_name, options.spin_time)
        for descriptor in remote.descriptors(options.parameter_names):
            out("\n".join(_description(descriptor)))
    return 0


def _description(descriptor: ParameterDescriptor) -> list[str]:
    lines = [f"Parameter name: {descriptor.name}", f"  Type: {TYPE_NAMES[descriptor.type]}"]
    if descriptor.description:
        lines.append(f"  Description: {descriptor.description}")
    lines.append("  Constraints:")
    if descriptor.read_only:
        lines.append("    Read only: true")
    for allowed in [*descriptor.floating_point_range, *descriptor.integer_range][:1]:
        lines.append(f"    Min value: {allowed.from_value}")
        lines.append(f"    Max value: {allowed.to_value}")
        if allowed.step:
            lines.append(f"    Step: {allowed.step}")
    if descriptor.additional_constraints:
        lines.append(f"    Additional constraints: {descriptor.additional_constraints}")
    return lines


def _dump(options: argparse.Namespace) -> int:
    with graph_node() as node:
        remote = RemoteParameters(node, options.node_name, options.spin_time)
        names = remote.names()
        values = remote.values(names)
    tree: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        *folders, leaf = name.split(".")
        place = tree
        for folder in folders:
            place = place.setdefault(folder, {})
        place[leaf] = shown(value)
    # Two line ends: a dump ends with an empty line in ros2cli.
    out(yaml.dump({remote.node_name: {"ros__parameters": tree}}, default_flow_style=False))
    return 0


def _load(options: argparse.Namespace) -> int:
    with graph_node() as node:
        remote = RemoteParameters(node, options.node_name, options.spin_time)
        parameters = parameters_for(
            remote.node_name, options.parameter_file, wildcard=not options.no_use_wildcard
        )
        results = remote.set(parameters)
    for parameter, result in zip(parameters, results, strict=True):
        reason = f": {result.reason}" if result.reason else ""
        if result.successful:
            out(f"Set parameter {parameter.name} successful{reason}")
        else:
            err(f"Set parameter {parameter.name} failed{reason}")
    return 0 if all(result.successful for result in results) else 1


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
