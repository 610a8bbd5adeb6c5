# SPDX-License-Identifier: MIT
"""Entry point of the `ros2` command: choose the command, run it, turn errors into exit codes."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from .console import err
from .errors import CommandError

# Each is a module of `verbs`, imported when used, for a fast start.
COMMANDS = {
    "action": "List actions and send goals",
    "interface": "Show message, service and action definitions",
    "launch": "Run a launch file",
    "lifecycle": "Look at and change the states of lifecycle nodes",
    "node": "List and inspect nodes",
    "param": "List, describe, get, set, dump and load parameters",
    "pkg": "List packages, their prefixes and executables",
    "run": "Run an executable of a package",
    "service": "List and call services",
    "topic": "List, echo, publish and inspect topics",
}
ONLY_IN_ROS = (
    "bag",
    "component",
    "control",
    "daemon",
    "doctor",
    "multicast",
    "security",
    "wtf",
)
OUTSIDE = (
    "is outside the subset of the ros2 command installed here; "
    "a ROS 2 installation has ROS's own ros2 command with it"
)
INTERRUPTED = 130


class Ros2Parser(argparse.ArgumentParser):
    """Says of unknown verbs and options that ROS's own command may have them."""

    def error(self, message: str) -> NoReturn:
        """Show the usage and the message, and exit with code 2."""
        if "invalid choice" in message or "unrecognized arguments" in message:
            message += (
                f"\nWhat '{self.prog} --help' does not list is outside the subset of the ros2 "
                "command installed here; a ROS 2 installation has ROS's own ros2 command."
            )
        super().error(message)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        _top_parser().print_help()
        return 0
    command, *rest = arguments
    if command not in COMMANDS:
        if command in ONLY_IN_ROS:
            err(f"ros2: error: '{command}' {OUTSIDE}.")
            return 2
        _top_parser().error(
            f"unknown command '{command}' (choose from {', '.join(sorted(COMMANDS))})"
        )
    module = importlib.import_module(f".verbs.{command}", __package__)
    parser = Ros2Parser(prog=f"ros2 {command}", description=module.__doc__)
    module.add_arguments(parser)
    options = parser.parse_args(rest)
    try:
        return int(options.run(options) or 0)
    except CommandError as error:
        err(str(error))
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (ros2 topic echo ... | head): that is no failure.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _top_parser() -> Ros2Parser:
    listing = "\n".join(f"  {name:<10} {text}" for name, text in sorted(COMMANDS.items()))
    return Ros2Parser(
        prog="ros2",
        usage="ros2 [-h] command ...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="A subset of ROS 2's command line, for ROS installed from PyPI.",
        epilog=(
            f"commands:\n{listing}\n\n"
            "Call `ros2 <command> -h` for details, for example:\n"
            "  ros2 pkg executables\n  ros2 topic echo --once /rosout"
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
