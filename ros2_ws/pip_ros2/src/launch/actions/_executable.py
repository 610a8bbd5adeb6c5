# SPDX-License-Identifier: MIT
"""What a process action will run: command, label, folder and environment, once expanded."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ..some_substitutions_type import SomeSubstitutionsType
from ..substitution import Substitution
from ..substitutions.launch_configuration import LaunchConfiguration
from ..utilities import normalize_to_list_of_substitutions, perform_substitutions

if TYPE_CHECKING:
    from ..launch_context import LaunchContext

_process_numbers = itertools.count(1)

_Pairs = list[tuple[list[Substitution], list[Substitution]]]


class Executable:
    """A command with substitutions; `prepare` performs them into the `final_*` values."""

    def __init__(
        self,
        *,
        cmd: Iterable[SomeSubstitutionsType],
        prefix: SomeSubstitutionsType | None,
        name: SomeSubstitutionsType | None,
        cwd: SomeSubstitutionsType | None,
        env: Mapping[SomeSubstitutionsType, SomeSubstitutionsType] | None,
        additional_env: Mapping[SomeSubstitutionsType, SomeSubstitutionsType] | None,
    ) -> None:
        if isinstance(cmd, (str, Substitution)):
            raise TypeError(
                f"cmd must be a list with one item per word of the command line, got {cmd!r}"
            )
        self.cmd = [normalize_to_list_of_substitutions(word) for word in cmd]
        if not self.cmd:
            raise ValueError("cmd is empty: nothing to run")
        self.name = None if name is None else normalize_to_list_of_substitutions(name)
        self.cwd = None if cwd is None else normalize_to_list_of_substitutions(cwd)
        self.prefix = normalize_to_list_of_substitutions(
            LaunchConfiguration("launch-prefix", default="") if prefix is None else prefix
        )
        # A prefix of the launch file itself applies always, one from outside by the filter.
        self.__prefix_filter = (
            normalize_to_list_of_substitutions(
                LaunchConfiguration("launch-prefix-filter", default="")
            )
            if prefix is None
            else None
        )
        self.__env = None if env is None else _pairs(env)
        self.__additional_env = None if additional_env is None else _pairs(additional_env)
        self.final_cmd: list[str] = []
        self.final_name = ""
        self.final_cwd: str | None = None
        self.final_env: dict[str, str] = {}

    def prepare(self, context: LaunchContext) -> None:
        """Perform all substitutions and number the process."""
        cmd = [perform_substitutions(context, word) for word in self.cmd]
        label = os.path.basename(cmd[0])
        if self.__prefix_applies(context, label):
            cmd = [*shlex.split(perform_substitutions(context, self.prefix)), *cmd]
            label = os.path.basename(cmd[0])
        if self.name is not None:
            label = perform_substitutions(context, self.name)
        self.final_cmd = cmd
        self.final_name = f"{label}-{next(_process_numbers)}"
        self.final_cwd = None if self.cwd is None else perform_substitutions(context, self.cwd)
        env = dict(context.environment) if self.__env is None else _performed(context, self.__env)
        if self.__additional_env is not None:
            env.update(_performed(context, self.__additional_env))
        self.final_env = env

    def __prefix_applies(self, context: LaunchContext, label: str) -> bool:
        if self.__prefix_filter is None:
            return True
        pattern = perform_substitutions(context, self.__prefix_filter)
        return re.match(pattern, label) is not None


def _pairs(given: Mapping[SomeSubstitutionsType, SomeSubstitutionsType]) -> _Pairs:
    if not isinstance(given, Mapping):
        raise TypeError(f"env and additional_env take a dictionary, got {given!r}")
    return [
        (normalize_to_list_of_substitutions(name), normalize_to_list_of_substitutions(value))
        for name, value in given.items()
    ]


def _performed(context: LaunchContext, pairs: _Pairs) -> dict[str, str]:
    return {
        perform_substitutions(context, name): perform_substitutions(context, value)
        for name, value in pairs
    }
