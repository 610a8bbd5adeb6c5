# SPDX-License-Identifier: MIT
"""Launch files written in Python."""

from __future__ import annotations

import os
import traceback
from types import ModuleType

from .._outside_subset import OutsideSubsetError
from ..invalid_launch_file_error import InvalidLaunchFileError
from ..launch_description import LaunchDescription
from ..launch_description_source import LaunchDescriptionSource
from ..some_substitutions_type import SomeSubstitutionsType

ENTRY_POINT = "generate_launch_description"
OTHER_FRONTENDS = (".xml", ".yaml", ".yml")


class InvalidPythonLaunchFileError(InvalidLaunchFileError):
    """A Python launch file is missing, does not compile, fails, or lacks its entry point."""


class PythonLaunchDescriptionSource(LaunchDescriptionSource):
    """Calls `generate_launch_description()` of a Python file."""

    def __init__(self, launch_file_path: SomeSubstitutionsType) -> None:
        super().__init__(launch_file_path, method="interpreted python launch file")

    def _get_launch_description(self, location: str) -> LaunchDescription:
        return get_launch_description_from_python_launch_file(location)


def get_launch_description_from_python_launch_file(
    python_launch_file_path: str,
) -> LaunchDescription:
    """Run a launch file and return its description; errors name the file and the line."""
    path = python_launch_file_path
    if path.endswith(OTHER_FRONTENDS):
        raise OutsideSubsetError(f"launch file '{path}': a launch file in XML or YAML")
    module = _load(path)
    entry_point = getattr(module, ENTRY_POINT, None)
    if not callable(entry_point):
        raise InvalidPythonLaunchFileError(
            f"launch file at '{path}' does not contain the required function '{ENTRY_POINT}()'"
        )
    try:
        description = entry_point()
    except Exception as error:
        raise InvalidPythonLaunchFileError(_failure(path, error)) from error
    if not isinstance(description, LaunchDescription):
        raise InvalidPythonLaunchFileError(
            f"launch file at '{path}': {ENTRY_POINT}() must return a LaunchDescription, "
            f"returned {description!r}"
        )
    return description


def _load(path: str) -> ModuleType:
    """Run the file as a module of its own, without leaving byte code beside it."""
    try:
        with open(path, "rb") as launch_file:
            source = launch_file.read()
    except OSError as error:
        raise InvalidPythonLaunchFileError(
            f"launch file '{path}' cannot be read: {error.strerror}"
        ) from error
    module = ModuleType("python_launch_file")
    module.__file__ = os.path.abspath(path)
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except Exception as error:
        raise InvalidPythonLaunchFileError(_failure(path, error)) from error
    return module


def _failure(path: str, error: Exception) -> str:
    """Say where in the launch file an error arose and what it is."""
    if isinstance(error, SyntaxError) and error.filename == path:
        shown = (error.text or "").rstrip("\n")
        marker = " " * max((error.offset or 1) - 1, 0) + "^"
        return (
            f"launch file '{path}', line {error.lineno}: {type(error).__name__}: {error.msg}\n"
            f"    {shown}\n    {marker}"
        )
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == path
    ]
    where = f"launch file '{path}', line {lines[-1]}" if lines else f"launch file '{path}'"
    return f"{where}: {type(error).__name__}: {error}"
