# SPDX-License-Identifier: MIT
"""Shell blocks of the pages: what a test types, what a person types, and whether it exists at all.

A comment above a block says what a test does with it:

    <!-- run -->                              typed by the tests
    <!-- run; expect: "text" -->              and prints this
    <!-- run; slow -->                        typed by `make test-slow`
    <!-- terminal: name; ready: "text" -->    a terminal of its own, until `<!-- end: name -->`
    <!-- person -->                           needs a person, a robot or a camera
    <!-- not tested: reason -->               everything else that no test types

Tutorials have one above every block. Whatever it says, each command must exist, with its flags.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .pages import ROOT

_DIRECTIVE = re.compile(r"\s*<!-- (?P<kind>run|terminal|person|end|not tested)\b(?P<rest>.*?)-->")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# Commands of the system that pages may use; those of ours are looked up.
SYSTEM = frozenset(
    (
        *("cd", "cat", "cp", "curl", "echo", "export", "git", "grep", "kill", "ls", "mkdir", "pip"),
        *("pytest", "python", "sed", "source", "sudo", "tail", "tensorboard", "timeout"),
        *("xdg-open", "colcon", "rosdep", "apt-get", "docker"),
    )
)
_SEPARATORS = {"&&", "||", ";", "|", "&"}


@dataclass(frozen=True)
class Block:
    """A shell block of a page, with what its comment says of it."""

    line: int
    kind: str
    """run, terminal, person, end, not tested; empty if there is no comment."""
    options: dict[str, str] = field(default_factory=dict)
    text: str = ""


def read_blocks(text: str) -> Iterator[Block]:
    """The shell blocks and ends of a page, in their order."""
    lines = text.splitlines()
    kind, options = "", dict[str, str]()
    number = 0
    while number < len(lines):
        line = lines[number]
        directive = _DIRECTIVE.match(line)
        if directive:
            kind, options = directive["kind"], options_of(directive["rest"])
            if kind == "end":
                yield Block(number + 1, kind, options)
                kind, options = "", {}
        elif line.strip().startswith("```bash"):
            end = next(i for i in range(number + 1, len(lines)) if lines[i].strip() == "```")
            body = "\n".join(part.strip() for part in lines[number + 1 : end])
            yield Block(number + 1, kind, options, body)
            kind, options, number = "", {}, end
        elif line.startswith("#"):
            kind, options = "", {}
        number += 1


def options_of(rest: str) -> dict[str, str]:
    """`: driver; ready: "up"` as {"name": "driver", "ready": "up"}."""
    values = {}
    for part in rest.strip().split(";"):
        key, _, value = part.strip().partition(":")
        if key or value:
            values[key.strip() or "name"] = value.strip().strip('"')
    return values


def commands_in(text: str) -> Iterator[list[str]]:
    """The simple commands of a shell block as words; comments and redirections are left out."""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        words.commenters = "#"
        command: list[str] = []
        skip = False
        for word in words:
            if word in _SEPARATORS:
                if command:
                    yield command
                command = []
            elif word in (">", ">>", "<", "2>"):
                skip = True
            elif skip:
                skip = False
            elif command or not _ASSIGNMENT.match(word):
                command.append(word)
        if command:
            yield command


def fault_of(words: list[str], known: dict[str, Any]) -> str:
    """What is wrong with a command; empty if it exists with these flags.

    Args:
        words: the command.
        known: what the packages offer (`reference.catalogue`).
    """
    first = words[0]
    if first == "make":
        return _fault_of_make(words[1:])
    if first == "ros2" and words[1] not in ("run",):
        return _fault_of_ros2(words[1:], known)
    if first in SYSTEM:
        if first == "source" and words[1].startswith(("env", "requirements")):
            return "" if (ROOT / words[1]).is_file() else f"no file {words[1]}"
        return ""
    return _fault_of_ours(words, known)


def _fault_of_make(words: list[str]) -> str:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
    variables = set(re.findall(r"^(\w+) \?=", text, re.MULTILINE))
    for word in words:
        name, given, _ = word.partition("=")
        if given and name not in variables:
            return f"make knows no variable {name}"
        if not given and not word.startswith("-") and word not in targets:
            return f"make knows no target {word}"
    return ""


def _fault_of_ours(words: list[str], known: dict[str, Any]) -> str:
    commands = {tuple(item["words"]): item for item in known["commands"]}
    if words[:2] == ["ros2", "run"] and tuple(words[3:4]) in commands:
        words = words[3:]  # also installed for plain Python
    longest = max((n for n in range(1, 6) if tuple(words[:n]) in commands), default=0)
    if not longest:
        return f"no command {' '.join(words[:4])}"
    command = commands[tuple(words[:longest])]
    subcommands = {
        w[longest] for w in commands if w[:longest] == tuple(words[:longest]) if w[longest:]
    }
    flags = {"-h", "--help", "--ros-args", "-r", "-p", "--params-file"}
    flags |= {name for flag in command["flags"] for name in flag["names"]}
    for word in words[longest:]:
        name = word.partition("=")[0]
        if name.startswith("--") and name not in flags:
            return f"{' '.join(words[:longest])} knows no flag {name}"
    if subcommands and len(words) > longest and not words[longest].startswith("-"):
        takes = any(not flag["names"][0].startswith("-") for flag in command["flags"])
        if not takes:
            return f"{words[longest]} is none of {', '.join(sorted(subcommands))}"
    return ""


def _fault_of_ros2(words: list[str], known: dict[str, Any]) -> str:
    verb = words[0]
    if verb == "launch":
        return _fault_of_launch(words[1:], known)
    names = _names_of(known)
    for word in words[1:]:
        if word.startswith("/") and word.strip("/") not in names:
            return f"no node, topic, service or action {word}"
        kind = re.fullmatch(r"equi_interfaces/(msg|srv|action)/(\w+)", word)
        if (
            kind
            and not (ROOT / f"ros2_ws/src/equi_interfaces/{kind[1]}/{kind[2]}.{kind[1]}").is_file()
        ):
            return f"no interface {word}"
    return ""


def _fault_of_launch(words: list[str], known: dict[str, Any]) -> str:
    package, file, *arguments = words
    if package not in ("equi_bringup", "equi_policy"):
        return ""  # somebody else's
    files = {item["file"]: item for item in known["launch_files"]}
    if file not in files:
        return f"no launch file {file}"
    by_name = {item["name"]: item for item in files[file]["arguments"]}
    for argument in arguments:
        name, given, value = argument.partition(":=")
        if not given:
            if argument.startswith("--"):
                continue
            return f"{argument} is no argument"
        if name not in by_name:
            return f"{file} has no argument {name}"
        choices = by_name[name]["choices"]
        if choices and value not in choices and not re.search(r"[$<]", value):
            return f"{name}:={value} is none of {', '.join(choices)}"
    return ""


def _names_of(known: dict[str, Any]) -> set[str]:
    names = {"rosout", "tf", "tf_static", "diagnostics", "cam_left_camera"}  # named by the launch
    for node in known["nodes"]:
        names.add(node["name"])
        names |= {stream["topic"] for way in ("publishes", "subscribes") for stream in node[way]}
        names |= {item["service"] for item in node["services"]}
        names |= {item["action"] for item in node["actions"]}
    # Cameras are named by the cell; the simulated ones stand for all.
    names |= {name.replace("cam_left", "cam_right") for name in names}
    return names
