# SPDX-License-Identifier: MIT
"""Parameters of a Node: dictionaries and files, normalised, then evaluated while launching."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from launch import LaunchContext, Substitution
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

from ..parameter_descriptions import ParameterFile, ParameterValue

SCALARS = (bool, int, float, str)


@dataclass(frozen=True)
class _Text:
    """Substitutions that make one text, read as YAML when performed."""

    parts: tuple[Substitution, ...]


@dataclass(frozen=True)
class _TextList:
    """A list whose items are texts of substitutions, each read as YAML when performed."""

    items: tuple[tuple[Substitution, ...], ...]


NormalizedDict = dict[tuple[Substitution, ...], Any]


def normalize_parameters(parameters: list[Any]) -> list[ParameterFile | NormalizedDict]:
    """Return a list of files and flat dictionaries; raise TypeError for anything else."""
    if not isinstance(parameters, list):  # ROS refuses a tuple too
        raise TypeError(
            f"Node: parameters must be a list of dictionaries and YAML file paths, "
            f"got {parameters!r}"
        )
    normalized: list[ParameterFile | NormalizedDict] = []
    for item in parameters:
        if isinstance(item, ParameterFile):
            normalized.append(item)
        elif isinstance(item, Mapping):
            normalized.append(_normalize_dict(item, ()))
        elif isinstance(item, (str, os.PathLike, Substitution, list, tuple)):
            normalized.append(ParameterFile(item))
        else:
            raise TypeError(
                f"Node: each of parameters is a dictionary or the path of a YAML file, got {item!r}"
            )
    return normalized


def evaluate_parameters(
    context: LaunchContext, parameters: Sequence[ParameterFile | NormalizedDict]
) -> list[Path | dict[str, Any]]:
    """Return file paths and dictionaries of plain values."""
    return [
        item.evaluate(context)
        if isinstance(item, ParameterFile)
        else {
            perform_substitutions(context, name): _evaluate(
                context, perform_substitutions(context, name), value
            )
            for name, value in item.items()
        }
        for item in parameters
    ]


def _normalize_dict(given: Mapping[Any, Any], prefix: tuple[Substitution, ...]) -> NormalizedDict:
    """Flatten nested dictionaries: {'a': {'b': 1}} names the parameter a.b."""
    flat: NormalizedDict = {}
    for key, value in given.items():
        name = tuple(normalize_to_list_of_substitutions(key))
        if prefix:
            name = (*prefix, *normalize_to_list_of_substitutions("."), *name)
        if isinstance(value, Mapping):
            flat.update(_normalize_dict(value, name))
        else:
            flat[name] = _normalize_value(value)
    return flat


def _normalize_value(value: Any) -> Any:
    if isinstance(value, Substitution):
        return _Text((value,))
    if isinstance(value, (ParameterValue, bytes, *SCALARS)):
        return value
    if isinstance(value, Sequence):
        return _normalize_list(value)
    raise TypeError(f"unexpected type for parameter value {value!r}: {type(value).__name__}")


def _normalize_list(value: Sequence[Any]) -> Any:
    """Find out what a list stands for.

    Substitutions mixed with text make one text; only a list of lists makes a list of texts.
    Integers mixed with floats become floats.
    """
    if not value:
        raise TypeError(
            "a parameter cannot be an empty list: its type would be unknown; leave it out"
        )
    kinds = {_kind(item) for item in value}
    if kinds == {float, int}:
        return [float(item) for item in value]
    if kinds in ({int}, {float}, {bool}, {str}):
        return list(value)
    if Substitution in kinds and kinds <= {str, Substitution}:
        return _Text(tuple(normalize_to_list_of_substitutions(value)))
    return _TextList(
        tuple(
            tuple(
                normalize_to_list_of_substitutions(
                    yaml.safe_dump(item) if isinstance(item, SCALARS) else item
                )
            )
            for item in value
        )
    )


def _kind(item: Any) -> type:
    for kind in (Substitution, str, bool, int, float):
        if isinstance(item, kind):
            return kind
    if isinstance(item, Sequence):
        return tuple
    raise TypeError(f"unexpected item {item!r} of type {type(item).__name__} in a parameter list")


def _evaluate(context: LaunchContext, name: str, value: Any) -> Any:
    if isinstance(value, ParameterValue):
        return value.evaluate(context)
    if isinstance(value, _Text):
        read = _read_yaml(name, perform_substitutions(context, value.parts))
        if isinstance(read, list):
            return _uniform(name, read)
        if isinstance(read, (bytes, *SCALARS)):
            return read
        raise TypeError(
            f"parameter '{name}' reads as {read!r}, which is no bool, int, float, str or list; "
            "for text, wrap it in launch_ros.parameter_descriptions.ParameterValue"
            "(value, value_type=str)"
        )
    if isinstance(value, _TextList):
        texts = (perform_substitutions(context, item) for item in value.items)
        return _uniform(name, [_read_yaml(name, text) for text in texts])
    return value


def _read_yaml(name: str, text: str) -> Any:
    if text == "":
        return ""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise TypeError(
            f"cannot read the value '{text}' of parameter '{name}' as YAML; for text, wrap it in "
            "launch_ros.parameter_descriptions.ParameterValue(value, value_type=str)"
        ) from None


def _uniform(name: str, items: list[Any]) -> list[Any]:
    if not items or type(items[0]) not in SCALARS or len({type(item) for item in items}) > 1:
        raise TypeError(
            f"parameter '{name}': expected a non-empty list of one type out of bool, int, float, "
            f"str; got {items!r}"
        )
    return items
