# SPDX-License-Identifier: MIT
"""Start a ROS node."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from tempfile import NamedTemporaryFile
from typing import Any

import yaml
from launch import LaunchContext, SomeSubstitutionsType, Substitution
from launch import logging as launch_logging
from launch.actions import ExecuteProcess
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

from ..substitutions import ExecutableInPackage
from ..utilities.namespaces import (
    absolute_namespace,
    check_namespace,
    check_node_name,
    prefixed_namespace,
)
from ..utilities.parameters import evaluate_parameters, normalize_parameters
from .push_ros_namespace import NAMESPACE_CONFIGURATION

# Keywords of ExecuteProcess that Node passes on; `cmd` and `name` have other meanings here.
PROCESS_KEYWORDS = frozenset(
    {
        "additional_env",
        "cached_output",
        "condition",
        "cwd",
        "emulate_tty",
        "env",
        "log_cmd",
        "on_exit",
        "output",
        "output_format",
        "prefix",
        "respawn",
        "respawn_delay",
        "respawn_max_retries",
        "shell",
        "sigkill_timeout",
        "sigterm_timeout",
    }
)


class Node(ExecuteProcess):
    """Runs an executable of a package with ROS arguments made from the given keywords.

    `parameters` is a list; later items win over earlier ones. Dictionaries are written to a
    temporary YAML file: under the node's full name if `name` and `namespace` are given (or a
    namespace was pushed), otherwise under the wildcard `/**`.
    """

    UNSPECIFIED_NODE_NAME = "<node_name_unspecified>"
    UNSPECIFIED_NODE_NAMESPACE = "<node_namespace_unspecified>"

    def __init__(
        self,
        *,
        executable: SomeSubstitutionsType,
        package: SomeSubstitutionsType | None = None,
        name: SomeSubstitutionsType | None = None,
        namespace: SomeSubstitutionsType | None = None,
        exec_name: SomeSubstitutionsType | None = None,
        parameters: list[Any] | None = None,
        remappings: Iterable[tuple[SomeSubstitutionsType, SomeSubstitutionsType]] | None = None,
        ros_arguments: list[SomeSubstitutionsType] | None = None,
        arguments: Sequence[SomeSubstitutionsType] | None = None,
        **kwargs: Any,
    ) -> None:
        unknown = sorted(set(kwargs) - PROCESS_KEYWORDS)
        if unknown:
            raise TypeError(
                f"Node() got an unexpected keyword argument '{unknown[0]}'; it takes executable, "
                "package, name, namespace, exec_name, parameters, remappings, ros_arguments, "
                f"arguments, {', '.join(sorted(PROCESS_KEYWORDS))}"
            )
        words: list[SomeSubstitutionsType] = [
            executable
            if package is None
            else ExecutableInPackage(package=package, executable=executable)
        ]
        words += _word_list("arguments", arguments, (list, tuple))
        if ros_arguments is not None:
            # ROS appends them to a list of its own, which no tuple can be added to.
            words += ["--ros-args", *_word_list("ros_arguments", ros_arguments, (list,))]
        super().__init__(cmd=words, name=exec_name, **kwargs)
        self.__package = package
        self.__executable = executable
        self.__name = None if name is None else normalize_to_list_of_substitutions(name)
        self.__namespace = (
            None if namespace is None else normalize_to_list_of_substitutions(namespace)
        )
        self.__parameters = [] if parameters is None else normalize_parameters(parameters)
        self.__remappings = [] if remappings is None else _checked_remappings(remappings)
        self.__expanded_name = self.UNSPECIFIED_NODE_NAME
        self.__expanded_namespace = self.UNSPECIFIED_NODE_NAMESPACE
        self.__final_node_name: str | None = None
        self.__expanded_remappings: list[tuple[str, str]] = []

    @property
    def node_package(self) -> SomeSubstitutionsType | None:
        """The package, as given."""
        return self.__package

    @property
    def node_executable(self) -> SomeSubstitutionsType:
        """The executable, as given."""
        return self.__executable

    @property
    def node_name(self) -> str:
        """The full name of the node; only known once the action was executed."""
        if self.__final_node_name is None:
            raise RuntimeError("cannot access 'node_name' before executing action")
        return self.__final_node_name

    @property
    def expanded_node_namespace(self) -> str:
        """The namespace in which the node was started."""
        return self.__expanded_namespace

    @property
    def expanded_remapping_rules(self) -> list[tuple[str, str]]:
        """The remappings that the node was started with."""
        return self.__expanded_remappings

    def is_node_name_fully_specified(self) -> bool:
        """Return whether name and namespace are both given by the launch file."""
        unknown = (self.UNSPECIFIED_NODE_NAME, self.UNSPECIFIED_NODE_NAMESPACE)
        return all(part not in self.node_name for part in unknown)

    def execute(self, context: LaunchContext) -> None:
        """Append the ROS arguments to the command line and start the process."""
        if self.__final_node_name is None:
            words = ["--ros-args", *self.__name_words(context)]
            words += self.__parameter_words(context)
            words += self.__remapping_words(context)
            self.cmd.extend(normalize_to_list_of_substitutions(word) for word in words)
        super().execute(context)
        self.__warn_of_duplicates(context)

    def __name_words(self, context: LaunchContext) -> list[str]:
        words = []
        if self.__name is not None:
            self.__expanded_name = perform_substitutions(context, self.__name)
            check_node_name(self.__expanded_name)
            words += ["-r", f"__node:={self.__expanded_name}"]
        given = None
        if self.__namespace is not None:
            given = perform_substitutions(context, self.__namespace)
        pushed = context.launch_configurations.get(NAMESPACE_CONFIGURATION)
        namespace = absolute_namespace(prefixed_namespace(pushed, given))
        if namespace is not None:
            check_namespace(namespace)
            self.__expanded_namespace = namespace
            words += ["-r", f"__ns:={namespace}"]
        self.__final_node_name = prefixed_namespace(self.__expanded_namespace, self.__expanded_name)
        return words

    def __parameter_words(self, context: LaunchContext) -> list[str]:
        words = []
        for parameters in evaluate_parameters(context, self.__parameters):
            if isinstance(parameters, dict):
                path = self.__write_parameter_file(context, parameters)
            else:
                path = str(parameters)
                if not os.path.isfile(path):
                    launch_logging.get_logger("launch_ros.actions.node").warning(
                        f"Parameter file path is not a file: {path}"
                    )
                    continue
            words += ["--params-file", path]
        return words

    def __write_parameter_file(self, context: LaunchContext, parameters: dict[str, Any]) -> str:
        key = self.node_name if self.is_node_name_fully_specified() else "/**"
        with NamedTemporaryFile("w", prefix="launch_params_", delete=False) as parameter_file:
            yaml.safe_dump(
                {key: {"ros__parameters": parameters}}, parameter_file, default_flow_style=False
            )
        context._resources.add_temporary_file(parameter_file.name)
        return parameter_file.name

    def __remapping_words(self, context: LaunchContext) -> list[str]:
        self.__expanded_remappings = [
            (perform_substitutions(context, source), perform_substitutions(context, target))
            for source, target in self.__remappings
        ]
        return [
            word
            for source, target in self.__expanded_remappings
            for word in ("-r", f"{source}:={target}")
        ]

    def __warn_of_duplicates(self, context: LaunchContext) -> None:
        if not self.is_node_name_fully_specified():
            return
        names = context._resources.node_names
        names[self.node_name] += 1
        if names[self.node_name] > 1:
            launch_logging.get_logger(self.name).warning(
                f"there are now at least {names[self.node_name]} nodes with the name "
                f"{self.node_name} created within this launch context"
            )


def _word_list(
    keyword: str, words: Sequence[SomeSubstitutionsType] | None, kinds: tuple[type, ...]
) -> list[SomeSubstitutionsType]:
    if words is None:
        return []
    if not isinstance(words, kinds):
        raise TypeError(f"Node: {keyword} must be a list with one item per word, got {words!r}")
    return list(words)


def _checked_remappings(
    remappings: Iterable[tuple[SomeSubstitutionsType, SomeSubstitutionsType]],
) -> list[tuple[list[Substitution], list[Substitution]]]:
    if isinstance(remappings, (str, dict)) or not isinstance(remappings, Iterable):
        raise TypeError(
            f"Node: remappings must be a list of pairs ('from', 'to'), got {remappings!r}"
        )
    checked = []
    for rule in remappings:
        if not isinstance(rule, (tuple, list)) or len(rule) != 2:
            raise TypeError(f"Node: a remapping is a pair ('from', 'to'), got {rule!r}")
        checked.append(
            (
                normalize_to_list_of_substitutions(rule[0]),
                normalize_to_list_of_substitutions(rule[1]),
            )
        )
    return checked
