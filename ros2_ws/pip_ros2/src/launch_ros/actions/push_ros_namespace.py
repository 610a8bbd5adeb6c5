# SPDX-License-Identifier: MIT
"""Put the nodes that follow in the scope below a namespace."""

from __future__ import annotations

from launch import Action, Condition, LaunchContext, SomeSubstitutionsType
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

from ..utilities.namespaces import absolute_namespace, check_namespace, prefixed_namespace

NAMESPACE_CONFIGURATION = "ros_namespace"


class PushROSNamespace(Action):
    """Extend the namespace in which nodes with a relative namespace are started."""

    def __init__(
        self, namespace: SomeSubstitutionsType, *, condition: Condition | None = None
    ) -> None:
        super().__init__(condition=condition)
        self.__namespace = normalize_to_list_of_substitutions(namespace)

    def execute(self, context: LaunchContext) -> None:
        """Set the launch configuration that Node actions read."""
        pushed = perform_substitutions(context, self.__namespace)
        before = context.launch_configurations.get(NAMESPACE_CONFIGURATION)
        namespace = absolute_namespace(prefixed_namespace(before, pushed)) or ""
        if namespace not in ("", "/"):
            check_namespace(namespace)
        context.launch_configurations[NAMESPACE_CONFIGURATION] = namespace


PushRosNamespace = PushROSNamespace
