# SPDX-License-Identifier: MIT
"""Each behaviour of a profile as an option of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ur_emulator.profile import Profile, ProfileError

_PLANES = "safety_planes"


def add_profile_options(parser: argparse.ArgumentParser) -> None:
    """One option per field of `Profile`; those that are not given keep the profile's value."""
    group = parser.add_argument_group(
        "behaviours", "each overrides one value of --profile and of --conformance-file"
    )
    for item in fields(Profile):
        option = "--" + item.name.replace("_", "-")
        meaning = str(item.metadata["help"]).replace("%", "%%")
        if item.name == _PLANES:
            group.add_argument("--safety-plane", dest=_PLANES, action="append", help=meaning)
        elif isinstance(item.default, bool):
            group.add_argument(option, action=argparse.BooleanOptionalAction, help=meaning)
        elif isinstance(item.default, tuple):
            group.add_argument(option, metavar="N,N,...", help=meaning)
        else:
            group.add_argument(option, type=type(item.default), metavar="N", help=meaning)


def with_options(profile: Profile, options: argparse.Namespace) -> Profile:
    """The profile with what the command line sets.

    Raises:
        ProfileError: a value that is out of range or no number.
    """
    changes: dict[str, Any] = {}
    for item in fields(Profile):
        given = getattr(options, item.name)
        if given is None:
            continue
        if item.name == _PLANES:
            changes[item.name] = tuple(_numbers("safety plane", text) for text in given)
        elif isinstance(item.default, tuple):
            numbers = _numbers(item.name, given)
            changes[item.name] = numbers * len(item.default) if len(numbers) == 1 else numbers
        else:
            changes[item.name] = given
    return replace(profile, **changes)


def to_arguments(behaviours: Mapping[str, Any]) -> list[str]:
    """Command line options that set fields of a profile.

    Raises:
        ProfileError: there is no such behaviour.
    """
    known = {item.name: item for item in fields(Profile)}
    arguments: list[str] = []
    for name, value in behaviours.items():
        if name not in known:
            raise ProfileError(f"behaviour is '{name}'; known: {', '.join(known)}")
        option = "--" + name.replace("_", "-")
        if name == _PLANES:
            arguments += ["--safety-plane=" + _text(plane) for plane in value]
        elif isinstance(value, bool):
            arguments.append(option if value else "--no-" + option[2:])
        else:
            arguments.append(f"{option}={_text(value)}")
    return arguments


def _text(value: Any) -> str:
    return ",".join(map(repr, value)) if isinstance(value, (tuple, list)) else repr(value)


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise ProfileError(f"{name} is '{text}'; it must be numbers with commas between") from error
