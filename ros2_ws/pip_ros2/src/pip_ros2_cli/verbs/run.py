# SPDX-License-Identifier: MIT
"""Run an executable of a package: ros2 run PACKAGE EXECUTABLE [ARGUMENTS ...]."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from ..errors import CommandError
from ..packages import executable_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--prefix", help="command to put before the executable, such as 'nice'")
    parser.add_argument("package_name", help="name of the package")
    parser.add_argument("executable_name", help="name of the executable")
    parser.add_argument(
        "argv", nargs=argparse.REMAINDER, help="arguments for the executable, passed on as they are"
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    path = executable_path(options.package_name, options.executable_name)
    words = [*shlex.split(options.prefix or ""), path, *options.argv]
    sys.stdout.flush()
    try:
        # The node takes this process over: signals, exit code and terminal are its own.
        os.execvp(words[0], words)
    except OSError as error:
        raise CommandError(f"cannot run '{' '.join(words)}': {error.strerror}") from None
