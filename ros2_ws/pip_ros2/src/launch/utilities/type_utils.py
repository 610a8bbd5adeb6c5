# SPDX-License-Identifier: MIT
"""Values that may be given directly or as a substitution, and the types they must end up with."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import yaml

from ..substitution import Substitution
from .normalize import normalize_to_list_of_substitutions, perform_substitutions

if TYPE_CHECKING:
    from ..launch_context import LaunchContext

SCALAR_TYPES = (int, float, bool, str)


def split_type(data_type: Any) -> tuple[type, bool]:
    """Return (scalar type, is a list) of one of int, float, bool, str, or a List of these."""
    is_list = typing.get_origin(data_type) is list
    scalar = typing.get_args(data_type)[0] if is_list else data_type
    if scalar not in SCALAR_TYPES:
        raise ValueError(
            f"{data_type!r} is no parameter type; allowed are int, float, bool, str "
            "and typing.List of one of these"
        )
    return scalar, is_list


def is_substitution(value: object) -> bool:
    """Return whether the value is a substitution, or a list of text with at least one in it."""
    if isinstance(value, Substitution):
        return True
    if isinstance(value, str) or not isinstance(value, Iterable):
        return False
    parts = list(value)
    return all(isinstance(part, (Substitution, str)) for part in parts) and any(
        isinstance(part, Substitution) for part in parts
    )


def normalize_typed_substitution(value: Any, data_type: Any | None) -> Any:
    """Return the value itself, a list of substitutions, or a list of values and such lists.

    Raises TypeError when the value can never become `data_type`.
    """
    if isinstance(value, SCALAR_TYPES):
        if data_type is not None and not _has_type(value, data_type):
            raise TypeError(f"value={value!r} is not an instance of {data_type}")
        return value
    if is_substitution(value):
        return normalize_to_list_of_substitutions(value)
    if not isinstance(value, Iterable):
        raise TypeError(
            "value must be a scalar, a substitution, or a list of scalars and substitutions; "
            f"got {value!r} of type {type(value).__name__}"
        )
    if data_type is not None and not split_type(data_type)[1]:
        raise TypeError(f"got the list {value!r} where a single {data_type} is expected")
    return [_normalized_item(item, data_type) for item in value]


def perform_typed_substitution(context: LaunchContext, value: Any, data_type: Any | None) -> Any:
    """Return the value with substitutions performed and turned into `data_type`."""
    if isinstance(value, list) and value and all(isinstance(v, Substitution) for v in value):
        return coerce_to_type(perform_substitutions(context, value), data_type)
    if isinstance(value, list):
        item_type = None if data_type is None else split_type(data_type)[0]
        items = [
            coerce_to_type(perform_substitutions(context, item), item_type)
            if isinstance(item, list)
            else item
            for item in value
        ]
        if len({type(item) for item in items}) > 1:
            raise ValueError(f"a parameter list must hold one type of value; got {items!r}")
        return items
    return value


def coerce_to_type(text: str, data_type: Any | None) -> Any:
    """Return the text as `data_type`; without one, as YAML reads it."""
    if data_type is None:
        value = _as_yaml(text)
        if not _is_allowed_value(value):
            raise ValueError(
                f"'{text}' reads as {value!r}, which is no bool, int, float, str or uniform list"
            )
        return value
    scalar, is_list = split_type(data_type)
    if is_list:
        value = _as_yaml(text)
        if not isinstance(value, list) or not all(isinstance(item, scalar) for item in value):
            raise ValueError(f"cannot convert '{text}' to a list of {scalar.__name__}")
        return value
    if scalar is str:
        return text
    if scalar is bool:
        value = _as_yaml(text)
        if not isinstance(value, bool):
            raise ValueError(f"cannot convert '{text}' to bool; write true or false")
        return value
    try:
        return scalar(text)
    except ValueError:
        raise ValueError(f"cannot convert '{text}' to {scalar.__name__}") from None


def _normalized_item(item: Any, data_type: Any | None) -> Any:
    if isinstance(item, SCALAR_TYPES):
        if data_type is not None and not isinstance(item, split_type(data_type)[0]):
            raise TypeError(f"list item {item!r} does not fit {data_type}")
        return item
    if is_substitution(item):
        return normalize_to_list_of_substitutions(item)
    raise TypeError(f"list item {item!r} is neither a scalar nor a substitution")


def _has_type(value: object, data_type: Any) -> bool:
    scalar, is_list = split_type(data_type)
    return not is_list and isinstance(value, scalar)


def _is_allowed_value(value: object) -> bool:
    if isinstance(value, list):
        return len({type(item) for item in value}) <= 1 and all(
            isinstance(item, SCALAR_TYPES) for item in value
        )
    return isinstance(value, SCALAR_TYPES)


def _as_yaml(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"'{text}' cannot be read as YAML: {error}") from None
