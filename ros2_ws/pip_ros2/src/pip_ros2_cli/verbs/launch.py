# SPDX-License-Identifier: MIT
"""Run a launch file: ros2 launch PACKAGE FILE [name:=value ...], or ros2 launch PATH [...].

The exit code is 0 if all went well, also after Ctrl-C, and 1 if the launch itself failed, or if a
process could not be started or died by itself with an exit code other than 0.
"""

from __future__ import annotations

import argparse
import difflib
import logging
import os

from launch import InvalidLaunchFileError, LaunchDescription, LaunchService
from launch import logging as launch_logging
from launch._outside_subset import OutsideSubsetError
from launch.actions import IncludeLaunchDescription
from launch.actions.execute_process import OUTPUT_OVERRIDE
from launch.launch_description_sources import (
    PythonLaunchDescriptionSource,
    get_launch_description_from_python_launch_file,
)

from ..console import out
from ..errors import CommandError
from ..orphans import adopt_orphans, stop_orphans
from ..packages import launch_file_path

# Launch configurations that ROS's launch itself reads, declared or not.
BUILT_IN_ARGUMENTS = (
    "emulate_tty",
    "launch-prefix",
    "launch-prefix-filter",
    "ros_namespace",
    "sigkill_timeout",
    "sigterm_timeout",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("-n", "--noninteractive", action="store_true", help="no terminal attached")
    parser.add_argument("-d", "--debug", action="store_true", help="show tracebacks of errors")
    parser.add_argument(
        "-s", "--show-args", "--show-arguments", action="store_true", help="show the arguments"
    )
    parser.add_argument(
        "-a",
        "--show-all-subprocesses-output",
        action="store_true",
        help="show the output of all processes, whatever the launch file says",
    )
    parser.add_argument("package_name", help="name of the package, or path of a launch file")
    parser.add_argument("launch_file_name", nargs="?", help="name of the launch file")
    parser.add_argument("launch_arguments", nargs="*", help="arguments as name:=value")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    path, arguments = _file_and_arguments(options)
    if options.debug:
        launch_logging.launch_config.level = logging.DEBUG
    try:
        description = get_launch_description_from_python_launch_file(path)
        declared = description.get_launch_arguments()
    except (InvalidLaunchFileError, OutsideSubsetError) as error:
        raise CommandError(str(error)) from error
    if options.show_args:
        _show_arguments(description)
        return 0
    _refuse_unknown(arguments, [argument.name for argument in declared], path)
    if options.show_all_subprocesses_output:
        os.environ[OUTPUT_OVERRIDE] = "both"
    return _launch(path, arguments, options)


def _launch(path: str, arguments: dict[str, str], options: argparse.Namespace) -> int:
    adopt_orphans()
    logger = launch_logging.get_logger()
    logger.info(f"All log files can be found below {launch_logging.launch_config.log_dir}")
    logger.info(f"Default logging verbosity is set to {logging.getLevelName(logger.level)}")
    service = LaunchService(
        argv=[f"{name}:={value}" for name, value in arguments.items()],
        noninteractive=options.noninteractive,
        debug=options.debug,
    )
    service.include_launch_description(
        LaunchDescription(
            [
                IncludeLaunchDescription(
                    PythonLaunchDescriptionSource(path), launch_arguments=arguments.items()
                )
            ]
        )
    )
    code = service.run()
    for pid in stop_orphans():
        logger.warning(f"stopped process [{pid}], which had left its process group")
    if service.failures:
        failed = ", ".join(f"{failure.name} ({failure.reason})" for failure in service.failures)
        logger.error(f"failed: {failed}")
        return 1
    return code


def _file_and_arguments(options: argparse.Namespace) -> tuple[str, dict[str, str]]:
    """Tell `PACKAGE FILE a:=b` from `PATH a:=b`."""
    first, second = options.package_name, options.launch_file_name
    words = list(options.launch_arguments)
    if os.path.isfile(first) and (second is None or ":=" in second):
        return first, _parsed([second, *words] if second else words)
    if second is None or ":=" in second:
        kind = "file" if os.sep in first or first.endswith((".py", ".xml", ".yaml")) else "package"
        if kind == "file":
            raise CommandError(f"launch file '{first}' does not exist")
        raise CommandError(
            f"'{first}' is no file, and no launch file of a package '{first}' is given: "
            "use ros2 launch PACKAGE FILE, or ros2 launch PATH"
        )
    return launch_file_path(first, second), _parsed(words)


def _parsed(words: list[str]) -> dict[str, str]:
    arguments = {}
    for word in words:
        name, separator, value = word.partition(":=")
        if not separator or not name or not value:
            raise CommandError(
                f"malformed launch argument '{word}', expected format '<name>:=<value>'"
            )
        arguments[name] = value
    return arguments


def _refuse_unknown(arguments: dict[str, str], declared: list[str], path: str) -> None:
    for name in arguments:
        if name in declared or name in BUILT_IN_ARGUMENTS:
            continue
        near = difflib.get_close_matches(name, declared, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise CommandError(
            f"launch argument '{name}' does not exist in '{path}'.{hint} "
            f"Its arguments are: {', '.join(declared) or 'none'} "
            "(--show-args describes them)"
        )


def _show_arguments(description: LaunchDescription) -> None:
    out("Arguments (pass arguments as '<name>:=<value>'):")
    arguments = description.get_launch_arguments()
    for argument in arguments:
        mark = "*" if argument._conditionally_included else ""
        out(f"\n    '{argument.name}':{mark}\n        {argument.description}")
        if argument.default_value is not None:
            default = " + ".join(token.describe() for token in argument.default_value)
            out(f"        (default: {default})")
    if not arguments:
        out("\n  No arguments.")
    elif any(argument._conditionally_included for argument in arguments):
        out("\n* argument(s) which are only used if specific conditions occur")
