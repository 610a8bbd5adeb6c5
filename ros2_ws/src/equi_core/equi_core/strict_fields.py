# SPDX-License-Identifier: MIT
"""Plain data of a JSON or YAML file -> frozen dataclass, strict about names and types.

Used for the policy contract, the calibration file and the cell file. An unknown, missing or
mistyped field is refused by its full name, for example `cameras[0].position_m`; nothing is guessed
and no default fills a gap. Ranges are the dataclass's own business (`__post_init__`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_WORDS = {
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    str: "a string",
    NoneType: "empty",
}


_LONGEST_SHOWN = 200


class FieldError(ValueError):
    """A field that is unknown, missing or of the wrong type; `name` is its full name."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"field '{name}' {problem}")
        self.name = name
        self.problem = problem


def read_fields(
    cls: type[T],
    data: Any,
    name: str = "",
    *,
    refused_by: type[Exception] | tuple[type[Exception], ...] = (),
) -> T:
    """Build a dataclass from plain data.

    Field types may be bool, int, float, str, mappings, other dataclasses, tuples of these and
    `| None`. Values that are built already are taken as they are.

    Args:
        cls: the dataclass.
        data: mapping with exactly the names of its fields.
        name: full name of this object in the file; empty for the whole file.
        refused_by: errors of the dataclasses' own checks to report as FieldError with full name.

    Raises:
        FieldError: names the field, its value and what is allowed.
    """
    if isinstance(data, cls):
        return data
    if not isinstance(data, Mapping):
        raise FieldError(name or "(file)", f"is {_shown(data)}; it must hold named fields")
    hints = get_type_hints(cls)
    names = [spec.name for spec in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for key in data:
        if key not in names:
            raise FieldError(_join(name, key), f"is unknown; known here: {', '.join(names)}")

    def nested(part: type[Any], value: Any, full_name: str) -> Any:
        return read_fields(part, value, full_name, refused_by=refused_by)

    values: dict[str, Any] = {}
    for key in names:
        full_name = _join(name, key)
        if key not in data:
            raise FieldError(full_name, f"is missing; needed here: {', '.join(names)}")
        values[key] = _typed(hints[key], data[key], full_name, nested)
    try:
        return cls(**values)
    except refused_by as error:
        raise FieldError(name or "(file)", f"is refused: {error}") from error


def plain_fields(value: Any) -> Any:
    """The inverse: dataclasses as dictionaries, tuples as lists, everything else as it is."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            spec.name: plain_fields(getattr(value, spec.name)) for spec in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return dict(value)
    return [plain_fields(item) for item in value] if isinstance(value, tuple) else value


def _typed(
    expected: Any, value: Any, name: str, nested: Callable[[type[Any], Any, str], Any]
) -> Any:
    """`value` as the declared type, or FieldError."""
    if dataclasses.is_dataclass(expected) and isinstance(expected, type):
        return nested(expected, value, name)
    if get_origin(expected) is UnionType:
        (inner,) = (part for part in get_args(expected) if part is not NoneType)
        return None if value is None else _typed(inner, value, name, nested)
    if get_origin(expected) is tuple:
        return _typed_tuple(get_args(expected), value, name, nested)
    if expected is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            if math.isfinite(value):
                return float(value)
        except OverflowError:
            raise FieldError(name, "is a number that is too large") from None
    elif isinstance(value, Mapping) if expected not in _WORDS else type(value) is expected:
        return value
    raise FieldError(name, f"is {_shown(value)}; it must be {_WORDS.get(expected, 'named values')}")


def _typed_tuple(
    parts: tuple[Any, ...], value: Any, name: str, nested: Callable[[type[Any], Any, str], Any]
) -> tuple[Any, ...]:
    any_length = parts[-1] is Ellipsis
    if not isinstance(value, (list, tuple)) or not (any_length or len(value) == len(parts)):
        length = "" if any_length else f"{len(parts)} "
        what = "numbers" if parts[0] is float else "items"
        raise FieldError(name, f"is {_shown(value)}; it must be a list of {length}{what}")
    kinds = [parts[0]] * len(value) if any_length else parts
    return tuple(
        _typed(kind, item, f"{name}[{index}]", nested)
        for index, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _shown(value: Any) -> str:
    """A value for a message; what is too long to read is cut, and too many digits are counted."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _join(prefix: str, name: object) -> str:
    return f"{prefix}.{name}" if prefix else str(name)
