# SPDX-License-Identifier: MIT
"""JSON and YAML text -> plain data, with one error for whatever can be wrong with the text.

The parsers of the standard library and of PyYAML end in half a dozen kinds of errors when a file is
damaged: not UTF-8, nested a thousand deep, a number of 5,000 digits, a date that does not exist.
Here all of them are a PlainDataError that says what is wrong, so that every loader needs one
`except`. A name that is given twice is refused as well: one of the two values would be lost.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 64
"""Nesting that a settings file can mean; deeper is damage or an attack."""


class PlainDataError(ValueError):
    """Text that holds no plain data; says why in one sentence."""


def read_text(path: Path) -> str:
    """The text of a file; PlainDataError if it cannot be read, is too large or not UTF-8."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise PlainDataError(f"has {size} bytes; at most {MAX_BYTES} are plausible")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise PlainDataError(f"is not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise PlainDataError(f"cannot be read: {error.strerror or error}") from error


def parse_json(text: str) -> Any:
    """The data of a JSON text."""
    try:
        data = json.loads(text, object_pairs_hook=_object)
    except PlainDataError:
        raise
    except RecursionError:
        raise PlainDataError(f"is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:  # JSONDecodeError, and integers of thousands of digits
        raise PlainDataError(f"is not JSON: {_first_line(error)}") from error
    _require_shallow(data)
    return data


def parse_yaml(text: str) -> Any:
    """The data of a YAML text, without aliases: a file that unfolds as it is read is refused."""
    try:
        data = yaml.load(text, Loader=_Loader)
    except PlainDataError:
        raise
    except RecursionError:
        raise PlainDataError(f"is nested deeper than {MAX_DEPTH} levels") from None
    # Beside YAMLError, PyYAML lets through what its constructors of numbers and dates raise.
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise PlainDataError(f"is not YAML: {_first_line(error)}") from error
    _require_shallow(data)
    return data


def read_json(path: Path) -> Any:
    """The data of a JSON file."""
    return parse_json(read_text(path))


def read_yaml(path: Path) -> Any:
    """The data of a YAML file."""
    return parse_yaml(read_text(path))


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Safe constructors only, no aliases, no name twice."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            mark = self.peek_event().start_mark
            raise PlainDataError(f"uses an alias in line {mark.line + 1}; write the value out")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        _require_distinct(names)
        return super().construct_mapping(node, deep=deep)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _require_distinct([name for name, _ in pairs])
    return dict(pairs)


def _require_distinct(names: list[str]) -> None:
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise PlainDataError(f"names '{twice[:80]}' twice; keep one of them")


def _require_shallow(data: Any) -> None:
    level, depth = [data], 0
    while level:
        if depth > MAX_DEPTH:
            raise PlainDataError(f"is nested deeper than {MAX_DEPTH} levels")
        level = [
            item
            for value in level
            if isinstance(value, (dict, list))
            for item in (value.values() if isinstance(value, dict) else value)
        ]
        depth += 1


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
