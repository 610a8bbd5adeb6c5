# SPDX-License-Identifier: MIT
"""The table of supported commands in the README, made from the parsers themselves.

python -m pip_ros2_cli.command_table
"""

from __future__ import annotations

import argparse
import importlib
import sys

from .main import COMMANDS

BEGIN = "<!-- commands: made by python -m pip_ros2_cli.command_table -->"
END = "<!-- end of commands -->"


def command_table() -> str:
    """Markdown: one row per command and verb, with its options and what it does."""
    rows = ["| command | options | what it does |", "|---|---|---|"]
    for command in sorted(COMMANDS):
        module = importlib.import_module(f".verbs.{command}", __package__)
        parser = argparse.ArgumentParser(prog=f"ros2 {command}")
        module.add_arguments(parser)
        verbs = [item for item in parser._actions if isinstance(item, argparse._SubParsersAction)]
        if not verbs:
            rows.append(_row(command, parser, COMMANDS[command].lower()))
        for group in verbs:
            words = {item.dest: item.help or "" for item in group._choices_actions}
            for verb, parser_of_verb in group.choices.items():
                rows.append(_row(f"{command} {verb}", parser_of_verb, words.get(verb, "")))
    return "\n".join(rows)


def _row(name: str, parser: argparse.ArgumentParser, text: str) -> str:
    options = [
        f"`{max(action.option_strings, key=len)}`"
        for action in parser._actions
        if action.option_strings and "--help" not in action.option_strings
    ]
    return f"| `ros2 {name}` | {' '.join(options) or '-'} | {text} |"


if __name__ == "__main__":
    sys.stdout.write(command_table() + "\n")
