# SPDX-License-Identifier: MIT
"""Parameters of a running node through its parameter services."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import Parameter, ParameterDescriptor, ParameterValue, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.parameter_client import AsyncParameterClient

from .errors import CommandError
from .node_names import ANSWER_TIMEOUT_S, answer_of, find_node, names_with_service

LACKING = "parameter services"


def nodes_with_parameters(node: Node) -> list[str]:
    """Return the full names of the nodes now seen whose parameters can be asked for."""
    return names_with_service(node, "list_parameters", "rcl_interfaces/srv/ListParameters")


class RemoteParameters:
    """The parameters of one node; a node that does not answer is a CommandError."""

    def __init__(self, node: Node, given_name: str, timeout_s: float) -> None:
        self._node = node
        self.node_name = find_node(node, given_name, nodes_with_parameters, timeout_s, LACKING)
        self._client = AsyncParameterClient(node, self.node_name)
        if not self._client.wait_for_services(timeout_sec=ANSWER_TIMEOUT_S):
            raise CommandError(
                f"the parameter services of node '{self.node_name}' do not become available"
            )

    def names(self) -> list[str]:
        """Return the names of all parameters, sorted."""
        return sorted(self._answer(self._client.list_parameters()).result.names)

    def value(self, name: str) -> ParameterValue:
        """Return a parameter's value; its type is NOT_SET if there is no such parameter."""
        values = self.values([name])
        return values[0] if values else ParameterValue()

    def values(self, names: Sequence[str]) -> list[ParameterValue]:
        """Return the values of several parameters in their order."""
        return list(self._answer(self._client.get_parameters(list(names))).values)

    def descriptors(self, names: Sequence[str]) -> list[ParameterDescriptor]:
        """Return what the node says of its parameters; an unknown name is a CommandError."""
        known = self.names()
        unknown = [name for name in names if name not in known]
        if unknown:
            raise CommandError(
                f"{self.node_name} has no parameter '{unknown[0]}'. "
                f"Parameters of {self.node_name}: {', '.join(known)}"
            )
        return list(self._answer(self._client.describe_parameters(list(names))).descriptors)

    def set(self, parameters: Sequence[Parameter]) -> list[SetParametersResult]:
        """Set parameters one by one; return what the node says of each."""
        return list(self._answer(self._client.set_parameters(list(parameters))).results)

    def _answer(self, future: Any) -> Any:
        return answer_of(self._node, future, f"node '{self.node_name}'")


def shown(value: ParameterValue) -> Any:
    """Return the value as Python numbers, text and lists."""
    python_value = parameter_value_to_python(value)
    return python_value.tolist() if hasattr(python_value, "tolist") else python_value
