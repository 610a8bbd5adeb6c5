# SPDX-License-Identifier: MIT
"""Messages to YAML text and YAML values into messages, in the notation of ros2cli."""

from __future__ import annotations

import array
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

from .errors import CommandError
from .interface_types import load_type

ELLIPSIS = "..."
DEFAULT_TRUNCATE_LENGTH = 128
NO_WRAPPING = 1 << 20

_SEQUENCE = re.compile(r"sequence<(?P<item>[^,>]+(?:<\d+>)?)(?:,\s*\d+)?>$")
_ARRAY = re.compile(r"(?P<item>.+)\[\d+\]$")


class _TextKeepingDumper(yaml.SafeDumper):
    """Quotes text that PyYAML would otherwise write as plain line breaks and lose."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    exotic_break = any(character in text for character in "\x85\u2028\u2029")
    return dumper.represent_scalar(
        "tag:yaml.org,2002:str", text, style='"' if exotic_break else None
    )


_TextKeepingDumper.add_representer(str, _represent_text)


@dataclass(frozen=True)
class Style:
    """How to show a message: lengths in items or characters, None for no limit."""

    truncate_length: int | None = None
    no_arr: bool = False
    no_str: bool = False
    flow: bool = False


def message_to_yaml(message: Any, style: Style = Style()) -> str:  # noqa: B008 (frozen)
    """Return the message as YAML text, fields in their order."""
    return value_to_yaml(message, "", style)


def value_to_yaml(value: Any, field_type: str, style: Style) -> str:
    """Return a message or a single field's value as YAML text."""
    return yaml.dump(
        plain_value(value, field_type, style),
        Dumper=_TextKeepingDumper,
        allow_unicode=True,
        default_flow_style=style.flow,
        sort_keys=False,
        width=NO_WRAPPING,
    )


def message_to_csv(message: Any, style: Style) -> str:
    """Return the values of the message's leaves, separated by commas."""

    def leaves(value: Any) -> list[str]:
        if isinstance(value, Mapping):
            return [leaf for item in value.values() for leaf in leaves(item)]
        if isinstance(value, list):
            return [leaf for item in value for leaf in leaves(item)]
        return [str(value)]

    return ",".join(leaves(plain_value(message, "", style)))


def plain_value(value: Any, field_type: str, style: Style) -> Any:
    """Return dictionaries, lists and scalars that YAML can show."""
    if hasattr(value, "get_fields_and_field_types"):
        return {
            name: plain_value(getattr(value, name), item_type, style)
            for name, item_type in value.get_fields_and_field_types().items()
        }
    if isinstance(value, str):
        return _shown_text(value, style)
    if isinstance(value, bytes):
        return value[0] if len(value) == 1 else list(value)
    if isinstance(value, (list, tuple, array.array, np.ndarray)):
        return _shown_items(value, field_type, style)
    return value.item() if isinstance(value, np.generic) else value


def field_of(message: Any, path: str) -> tuple[Any, str]:
    """Return (value, type) of a field such as `pose.position.x` or `ranges[3]`."""
    value, field_type = message, ""
    for part in path.split("."):
        name, *indices = re.split(r"\[(-?\d+)\]", part)
        fields: dict[str, str] = getattr(value, "get_fields_and_field_types", dict)()
        if name not in fields:
            raise CommandError(
                f"Invalid field '{path}': {type(value).__name__} has "
                f"{', '.join(fields) or 'no fields'}"
            )
        value, field_type = getattr(value, name), fields[name]
        for index in indices:
            if index:
                try:
                    value, field_type = value[int(index)], _item_type(field_type) or ""
                except (IndexError, TypeError) as error:
                    raise CommandError(f"Invalid field '{path}': {error}") from None
    return value, field_type


def read_values(text: str) -> dict[str, Any]:
    """Return the dictionary that YAML text such as '{a: 1}' stands for."""
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CommandError(f"the values '{text}' are not valid YAML: {error}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise CommandError(f"the values must be a YAML dictionary like '{{a: 1}}', got '{text}'")
    return values


class Stamps:
    """Times inside a message that mean the moment of publishing."""

    def __init__(self) -> None:
        self._times: list[Any] = []

    def add(self, time: Any) -> Any:
        """Keep a builtin_interfaces/msg/Time and return it."""
        self._times.append(time)
        return time

    def set(self, now: Any) -> None:
        """Set all of them."""
        for time in self._times:
            time.sec, time.nanosec = now.sec, now.nanosec


def fill_message(message: Any, values: Mapping[str, Any], stamps: Stamps | None = None) -> None:
    """Set the message's fields from a dictionary; errors name the field and what fits.

    Args:
        message: Is changed.
        values: By name of the field.
        stamps: Where given, `auto` for a header and `now` for a time are put there.
    """
    fields = message.get_fields_and_field_types()
    # Generated messages check the values of their fields only when told to.
    message._check_fields = True
    for name, value in values.items():
        if name not in fields:
            near = difflib.get_close_matches(str(name), fields, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise CommandError(
                f"Failed to populate field: {type(message).__name__} has no field '{name}'.{hint} "
                f"Its fields are: {', '.join(f'{n} ({t})' for n, t in fields.items())}"
            )
        converted = _converted(value, fields[name], name, stamps)
        try:
            setattr(message, name, converted)
        except (AssertionError, TypeError, ValueError, OverflowError) as error:
            raise CommandError(
                f"Failed to populate field: '{name}' of {type(message).__name__} takes "
                f"{fields[name]}, got {value!r}: {error}"
            ) from None


def _converted(value: Any, field_type: str, name: str, stamps: Stamps | None) -> Any:
    item_type = _item_type(field_type)
    if item_type is not None:
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise CommandError(
                f"Failed to populate field: '{name}' takes a list ({field_type}), got {value!r}"
            )
        return [_converted(item, item_type, name, stamps) for item in value]
    if "/" in field_type:
        if stamps is not None and (field_type, value) == ("builtin_interfaces/Time", "now"):
            return stamps.add(load_type(field_type, "msg")())
        if stamps is not None and (field_type, value) == ("std_msgs/Header", "auto"):
            value = {"stamp": "now"}
        if not isinstance(value, Mapping):
            raise CommandError(
                f"Failed to populate field: '{name}' takes a dictionary ({field_type}), "
                f"got {value!r}"
            )
        nested = load_type(field_type, "msg")()
        fill_message(nested, value, stamps)
        return nested
    return _converted_scalar(value, field_type)


def _converted_scalar(value: Any, field_type: str) -> Any:
    if field_type in ("float", "double") and isinstance(value, int):
        return value if isinstance(value, bool) else float(value)
    if field_type in ("float", "double") and isinstance(value, str):
        # YAML 1.1 reads 1e-3 (without a dot) as text.
        try:
            return float(value)
        except ValueError:
            return value
    if field_type.startswith(("string", "wstring")) and isinstance(value, (int, float)):
        return str(value)
    if field_type == "octet" and isinstance(value, int):
        return bytes([value])
    return value


def _item_type(field_type: str) -> str | None:
    """Return the type of a list's items, None if the type is no list."""
    match = _SEQUENCE.match(field_type) or _ARRAY.match(field_type)
    return match["item"] if match else None


def _shown_text(text: str, style: Style) -> str:
    if style.no_str:
        return f"<string length: <{len(text)}>>"
    if style.truncate_length is not None and len(text) > style.truncate_length:
        return text[: style.truncate_length] + ELLIPSIS
    return text


def _shown_items(items: Any, field_type: str, style: Style) -> Any:
    item_type = _item_type(field_type) or ""
    if style.no_arr:
        if field_type.startswith("sequence"):
            return f"<sequence type: {item_type}, length: {len(items)}>"
        return f"<array type: {item_type}[{len(items)}]>"
    shown = items[: style.truncate_length]
    plain = [plain_value(item, item_type, style) for item in shown]
    return plain if len(shown) == len(items) else [*plain, ELLIPSIS]
