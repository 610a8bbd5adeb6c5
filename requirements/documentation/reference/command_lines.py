# SPDX-License-Identifier: MIT
"""Every command of the packages with its flags, taken from the parsers that the programs build.

A command is called as a user would call it, up to the moment at which it has built its parser and
is about to read its arguments; there the parser is taken and the call ends. So nothing is listed
here twice and nothing runs.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from ..pages import ROOT

BENCHMARKS = "equi.benchmarks"
_ENTRY = re.compile(r'"(?P<name>[\w-]+)\s*=\s*(?P<module>[\w.]+):(?P<function>\w+)"')
_FORWARDED = re.compile(r'^(?P<name>\w+) = executable\("(?P<module>[\w.]+)"\)', re.MULTILINE)
# Commands that build the parser of a subcommand only when it is named, and with which arguments.
_NAMED_FIRST = {
    "equi-train": (
        ("robot", "--preset", "ship"),
        ("carflag", "--domain", "carflag-1d"),
        ("dreamer",),
        ("slac",),
    ),
}
# Targets whose recipe runs a module of ours; ARGS="..." hands the flags over.
_MAKE = re.compile(r"^([a-z-]+):.*\n\t.*python -m ([\w.]+)", re.MULTILINE)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Flag:
    """One argument of a command."""

    names: tuple[str, ...]
    """As typed, such as ("-n", "--name"); a positional argument has its one name."""
    values: str
    """Choices or metavar; empty for a switch."""
    default: str
    text: str

    @property
    def positional(self) -> bool:
        """Whether it is an argument without dashes."""
        return not self.names[0].startswith("-")


@dataclass(frozen=True)
class Command:
    """One command, or one subcommand of one."""

    words: tuple[str, ...]
    """What is typed, such as ("equi-train", "robot")."""
    text: str
    flags: tuple[Flag, ...]

    def flag_names(self) -> set[str]:
        """Everything with dashes that it takes."""
        return {name for flag in self.flags for name in flag.names if name.startswith("-")}


@dataclass(frozen=True)
class EntryPoint:
    """A line of `entry_points` in a setup.py."""

    package: str
    name: str
    module: str
    function: str
    benchmark: bool

    @property
    def is_node(self) -> bool:
        """A ROS node: its arguments are ROS's own."""
        return self.module.endswith("_node") and " parse(" not in _source(self.module)

    @property
    def typed(self) -> tuple[str, ...]:
        """What a user types to start it."""
        if self.benchmark:
            return ("equi-bench", self.name)
        if self.package == "make":
            return ("make", self.name)
        if "-" in self.name and self.package in _ON_THE_PATH:
            return (self.name,)
        return ("ros2", "run", self.package, self.name)


_ON_THE_PATH = ("training", "calibration", "models", "equi_core", "equi_control", "ur_emulator")
"""Packages that setup installs for plain Python too: `source env.sh` finds their commands."""


def entry_points() -> list[EntryPoint]:
    """Console commands and benchmarks of all packages."""
    found = []
    others = (ROOT / name for name in ("training", "calibration", "models"))
    folders = [*sorted((ROOT / "ros2_ws/src").iterdir()), *others]
    for folder in folders:
        if not (folder / "setup.py").is_file():
            continue
        text = (folder / "setup.py").read_text(encoding="utf-8")
        for group in ("console_scripts", BENCHMARKS):
            block = re.search(rf'"{re.escape(group)}": \[(.*?)\]', text, re.DOTALL)
            for match in _ENTRY.finditer(block[1] if block else ""):
                module, function = match["module"], match["function"]
                if module.endswith(".executables"):
                    module, function = _behind(module, function), "main"
                found.append(
                    EntryPoint(folder.name, match["name"], module, function, group == BENCHMARKS)
                )
    have = {entry.module for entry in found}
    recipes = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target, module in _MAKE.findall(recipes):
        if module not in have and module.startswith("equi_"):
            found.append(EntryPoint("make", target, module, "main", False))
    return found


def commands() -> list[Command]:
    """Every command and subcommand with its flags, in the order of the entry points."""
    found: dict[tuple[str, ...], Command] = {}
    for entry in entry_points():
        if entry.is_node:
            found[entry.typed] = Command(entry.typed, _first_line(_source(entry.module)), ())
            continue
        for arguments in _NAMED_FIRST.get(entry.name, ((),)):
            words = entry.typed + tuple(arguments[:1])
            for command in _of_parser(words, _parser_of(entry, arguments)):
                found.setdefault(command.words, command)
    return list(found.values())


class _CapturedError(BaseException):
    """Carries the parser out of the program that built it."""

    def __init__(self, parser: Any) -> None:
        self.parser = parser  # argparse's, or that of tyro's own copy of it


def _parser_of(entry: EntryPoint, arguments: Sequence[str]) -> Any:
    import tyro

    def take(parser: Any, *_: Any, **__: Any) -> NoReturn:
        raise _CapturedError(parser)

    def take_tyro(f: Any, *, args: Any = None, **options: Any) -> NoReturn:
        raise _CapturedError(tyro.extras.get_parser(f, **options))

    function = getattr(importlib.import_module(entry.module), entry.function)
    with _patched(tyro, take, take_tyro):
        try:
            function(list(arguments))
        except _CapturedError as captured:
            return captured.parser
    raise LookupError(f"{entry.module}:{entry.function} built no parser")


@contextlib.contextmanager
def _patched(tyro: Any, take: Callable[..., Any], take_tyro: Callable[..., Any]) -> Iterator[None]:
    dictionary = importlib.import_module("tyro.extras._subcommand_cli_from_dict")
    with (
        mock.patch.object(argparse.ArgumentParser, "parse_args", take),
        mock.patch.object(tyro, "cli", take_tyro),
        mock.patch.object(dictionary, "cli", take_tyro),
    ):
        yield


def _of_parser(words: tuple[str, ...], parser: Any) -> Iterator[Command]:
    flags = []
    below: list[tuple[tuple[str, ...], Any]] = []
    for action in parser._actions:
        kind = type(action).__name__  # tyro brings an argparse of its own
        if kind == "_SubParsersAction":
            below += [((*words, name), child) for name, child in action.choices.items()]
        elif kind != "_HelpAction":
            flags.append(_flag(action))
    yield Command(words, _first_line(parser.description or ""), tuple(flags))
    for name, child in below:
        yield from _of_parser(name, child)


def _flag(action: Any) -> Flag:
    names = tuple(action.option_strings) or (str(action.metavar or action.dest),)
    values = ""
    if action.choices:
        values = ", ".join(f"`{choice}`" for choice in action.choices)
    elif action.nargs != 0:
        metavar = action.metavar
        values = " ".join(metavar) if isinstance(metavar, tuple) else str(metavar or action.dest)
    text = re.sub(r"[.;]? *Default:? %\(default\)s", "", _plain(action.help or ""))
    default = re.search(r"\((?:default|optional)[^)]*?: (?P<value>.*?)\)$", text)
    if default:
        text = text[: default.start()].strip()
        shown = default["value"]
    else:
        text = re.sub(r"\((required|optional)\)$", "", text).strip()
        hidden = action.default in (None, False, argparse.SUPPRESS, [], "")
        shown = "" if hidden else str(action.default)
    if action.required and names[0].startswith("-"):
        shown = "required"
    return Flag(names, _plain(values), shown, text)


def _plain(text: object) -> str:
    return " ".join(_ANSI.sub("", str(text)).replace("%%", "%").split())


def _first_line(text: str) -> str:
    """The first sentence of a description or of a module's docstring."""
    docstring = re.search(r'"""(.*?)"""', text, re.DOTALL)
    words = " ".join((docstring[1] if docstring else text).strip().split("\n\n")[0].split())
    return words.replace("``", "`")


def _behind(module: str, name: str) -> str:
    """The module whose `main` an executable calls."""
    return dict(_FORWARDED.findall(_source(module)))[name]


def _source(module: str) -> str:
    relative = Path(*module.split("."))
    for base in (
        *sorted((ROOT / "ros2_ws/src").iterdir()),
        ROOT / "training",
        ROOT / "calibration",
    ):
        for path in (base / relative.with_suffix(".py"), base / relative / "__init__.py"):
            if path.is_file():
                return path.read_text(encoding="utf-8")
    raise LookupError(f"no source of {module}")
