# SPDX-License-Identifier: MIT
"""Parameter values and parameter files with a stated type."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from launch import LaunchContext, SomeSubstitutionsType
from launch._outside_subset import OutsideSubsetError, refuse_missing_names
from launch.substitution import Substitution
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions
from launch.utilities.type_utils import normalize_typed_substitution, perform_typed_substitution


class ParameterValue:
    """A value, or a substitution whose text is turned into `value_type`.

    Without a type the text is read as YAML: '5' becomes an int, 'true' a bool. `value_type=str`
    keeps it as text.
    """

    def __init__(self, value: Any, *, value_type: Any | None = None) -> None:
        self.__value = normalize_typed_substitution(value, value_type)
        self.__value_type = value_type

    @property
    def value(self) -> Any:
        """The value, with substitutions not yet performed."""
        return self.__value

    @property
    def value_type(self) -> Any | None:
        """The type asked for."""
        return self.__value_type

    def evaluate(self, context: LaunchContext) -> Any:
        """Return the value in the context."""
        return perform_typed_substitution(context, self.__value, self.__value_type)


class ParameterFile:
    """The path of a YAML file with parameters."""

    def __init__(
        self,
        param_file: str | os.PathLike[str] | SomeSubstitutionsType,
        *,
        allow_substs: bool | SomeSubstitutionsType = False,
    ) -> None:
        if allow_substs is not False:
            raise OutsideSubsetError("ParameterFile(allow_substs=...)")
        self.__param_file: list[Substitution] = normalize_to_list_of_substitutions(
            os.fspath(param_file) if isinstance(param_file, os.PathLike) else param_file
        )

    @property
    def param_file(self) -> list[Substitution]:
        """The path, with substitutions not yet performed."""
        return self.__param_file

    def evaluate(self, context: LaunchContext) -> Path:
        """Return the path in the context."""
        return Path(perform_substitutions(context, self.__param_file))


__getattr__ = refuse_missing_names(__name__, ("ParameterFile", "ParameterValue"), ("Parameter",))
