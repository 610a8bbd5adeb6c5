# SPDX-License-Identifier: MIT
"""Definitions of messages, services and actions: list, show, proto."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator

from ament_index_python import get_resource, get_resources

from ..console import out
from ..errors import CommandError
from ..interface_types import KINDS, load_type, split_type
from ..message_yaml import message_to_yaml
from ..packages import share_of

TITLES = {"msg": "Messages", "srv": "Services", "action": "Actions"}
PRIMITIVES = frozenset(
    [
        "bool",
        "byte",
        "char",
        "float32",
        "float64",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "string",
        "wstring",
    ]
)
FIELD = re.compile(r"\s*(?P<type>[A-Za-z]\w*(?:/[A-Za-z]\w*)?)(?:<=\d+)?(?:\[[^\]]*\])?\s+\w+")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="verb")
    listing = verbs.add_parser("list", help="list the interface types")
    for flag, kind in (("-m", "msg"), ("-s", "srv"), ("-a", "action")):
        listing.add_argument(
            flag, f"--only-{kind}s", dest="only", action="append_const", const=kind,
            help=f"only the {TITLES[kind].lower()}",
        )  # fmt: skip
    listing.set_defaults(run=_list)
    show = verbs.add_parser("show", help="show a definition, nested types included")
    show.add_argument("type", help="type, such as std_msgs/msg/String")
    comments = show.add_mutually_exclusive_group()
    comments.add_argument("--all-comments", action="store_true", help="of nested types too")
    comments.add_argument("--no-comments", action="store_true", help="neither comments nor gaps")
    show.set_defaults(run=_show)
    proto = verbs.add_parser("proto", help="print an instance with default values, as YAML")
    proto.add_argument("type", help="type, such as std_msgs/msg/String")
    proto.add_argument("--no-quotes", action="store_true", help="without the quotes around it")
    proto.set_defaults(run=_proto)


def _list(options: argparse.Namespace) -> None:
    for kind in options.only or KINDS:
        out(f"{TITLES[kind]}:")
        names = {
            f"{package}/{entry.rpartition('.')[0]}"
            for package in get_resources("rosidl_interfaces")
            for entry in get_resource("rosidl_interfaces", package)[0].splitlines()
            if entry.startswith(f"{kind}/")
        }
        for name in sorted(names):
            out(f"    {name}")


def _show(options: argparse.Namespace) -> None:
    lines = definition_lines(
        options.type, comments=not options.no_comments, nested_comments=options.all_comments
    )
    for line in lines:
        out(line)


def _proto(options: argparse.Namespace) -> None:
    kind = split_type(options.type)[1]
    found = load_type(options.type, kind)
    part = {
        "msg": found,
        "srv": getattr(found, "Request", None),
        "action": getattr(found, "Goal", None),
    }
    text = message_to_yaml(part[kind]())
    out(text if options.no_quotes else f'"{text}"')


def definition_lines(
    name: str, *, comments: bool = True, nested_comments: bool = False, depth: int = 0
) -> Iterator[str]:
    """Yield the lines of a definition, each nested type indented by a tab below its field."""
    package, kind, type_name = split_type(name)
    path = os.path.join(share_of(package), kind, f"{type_name}.{kind}")
    try:
        with open(path, encoding="utf-8") as definition:
            lines = definition.read().splitlines()
    except OSError:
        folder = os.path.dirname(path)
        known = sorted(
            entry.rpartition(".")[0]
            for entry in (os.listdir(folder) if os.path.isdir(folder) else [])
            if entry.endswith(f".{kind}")
        )
        raise CommandError(
            f"Unknown interface '{name}': package '{package}' has these of kind {kind}: "
            f"{', '.join(known) or 'none'}"
        ) from None
    for line in lines:
        code = _without_comment(line)
        shown = line.rstrip() if comments else code.strip()
        if shown or comments:
            yield "\t" * depth + shown if shown else ""
        field = FIELD.match(code)
        if field and field["type"] not in PRIMITIVES:
            nested = field["type"] if "/" in field["type"] else f"{package}/{field['type']}"
            yield from definition_lines(
                nested.replace("/", "/msg/"),
                comments=nested_comments,
                nested_comments=nested_comments,
                depth=depth + 1,
            )


def _without_comment(line: str) -> str:
    """Return the line up to a '#' that is not inside a quoted default value."""
    quote = ""
    for position, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#":
            return line[:position]
    return line
