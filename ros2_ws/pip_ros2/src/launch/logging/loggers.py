# SPDX-License-Identifier: MIT
"""Loggers of the launch and of the output of processes."""

from __future__ import annotations

import datetime
import logging
import os
import socket
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

SCREEN_FORMAT = "[{levelname}] [{name}]: {message}"
FILE_FORMAT = "{created:.7f} [{levelname}] [{name}]: {message}"
MAIN_LOG = "launch.log"
COLOURS = {"WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31m"}
COLOUR_END = "\x1b[0m"

SINKS = ("screen", "log", "own_log")
OUTPUT_SHORTHANDS: dict[str, dict[str, frozenset[str]]] = {
    "screen": {"both": frozenset({"screen"})},
    "log": {"both": frozenset({"log"}), "stderr": frozenset({"screen"})},
    "both": {"both": frozenset({"log", "screen"})},
    "own_log": {
        "both": frozenset({"own_log"}),
        "stdout": frozenset({"own_log"}),
        "stderr": frozenset({"own_log"}),
    },
    "full": {
        "both": frozenset({"screen", "log", "own_log"}),
        "stdout": frozenset({"own_log"}),
        "stderr": frozenset({"own_log"}),
    },
}


class _ScreenHandler(logging.Handler):
    """Writes to whatever `sys.stdout` is at the moment, as ROS's launch does."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record and flush."""
        try:
            text = self.format(record)
            colour = COLOURS.get(record.levelname) if self.formatter is not None else None
            if colour and sys.stdout.isatty() and "NO_COLOR" not in os.environ:
                text = f"{colour}{text}{COLOUR_END}"
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
        except BrokenPipeError:
            pass  # nobody reads any more (ros2 launch ... | head); the log file has it
        except Exception:
            self.handleError(record)


class LaunchLogConfig:
    """Where records go; one for the whole process, as `launch.logging.launch_config`."""

    def __init__(self) -> None:
        self.level = logging.INFO
        self.__log_dir: Path | None = None
        self.__loggers: dict[str, logging.Logger] = {}
        self.__files: dict[str, logging.Handler] = {}
        self.__screen = _ScreenHandler()
        self.__screen.setFormatter(logging.Formatter(SCREEN_FORMAT, style="{"))
        self.__raw_screen = _ScreenHandler()

    @property
    def log_dir(self) -> str:
        """The folder of this launch's log files; made when first asked for."""
        if self.__log_dir is None:
            stamp = datetime.datetime.now().strftime("%Y-%m-%d-%H-%M-%S-%f")
            name = f"{stamp}-{socket.gethostname()}-{os.getpid()}"
            self.__log_dir = _base_folder() / name
        return str(self.__log_dir)

    def get_logger(self, name: str) -> logging.Logger:
        """Return the logger of this name: screen and main log file."""
        logger = self.__loggers.get(name)
        if logger is None:
            # Not from logging.getLogger: the names are labels of processes, not modules, and
            # must neither inherit handlers nor show up in the tree of other libraries.
            logger = logging.Logger(name)
            logger.addHandler(self.__screen)
            logger.addHandler(self.__file(MAIN_LOG, FILE_FORMAT))
            self.__loggers[name] = logger
        logger.setLevel(self.level)
        return logger

    def get_output_logger(
        self, process_name: str, stream: str, config: Mapping[str, frozenset[str]]
    ) -> logging.Logger:
        """Return the logger of one stream of one process."""
        logger = logging.Logger(f"{process_name}-{stream}", level=logging.INFO)
        sinks = config.get("both", frozenset()) | config.get(stream, frozenset())
        if "screen" in sinks:
            logger.addHandler(self.__raw_screen)
        if "log" in sinks:
            logger.addHandler(self.__file(MAIN_LOG, FILE_FORMAT))
        if "own_log" in config.get(stream, frozenset()):
            logger.addHandler(self.__file(f"{process_name}-{stream}.log", "{message}"))
        if "own_log" in config.get("both", frozenset()):
            logger.addHandler(self.__file(f"{process_name}-stdout-stderr.log", "{message}"))
        return logger

    def __file(self, name: str, layout: str) -> logging.Handler:
        if name not in self.__files:
            try:
                Path(self.log_dir).mkdir(parents=True, exist_ok=True)
                handler: logging.Handler = logging.FileHandler(
                    Path(self.log_dir) / name, encoding="utf-8"
                )
            except OSError as error:
                handler = logging.NullHandler()
                sys.stderr.write(
                    f"no log file {name} in {self.log_dir}: {error.strerror}; "
                    "set ROS_LOG_DIR to a folder you can write to\n"
                )
            handler.setFormatter(logging.Formatter(layout, style="{"))
            self.__files[name] = handler
        return self.__files[name]


launch_config = LaunchLogConfig()


def get_logger(name: str | None = None) -> logging.Logger:
    """Return the logger of the launch, or of one of its parts or processes."""
    return launch_config.get_logger("launch" if name is None else name)


def get_output_loggers(
    process_name: str, output_config: str | Mapping[str, str | Collection[str]]
) -> tuple[logging.Logger, logging.Logger]:
    """Return the loggers of a process's stdout and stderr.

    `output_config` is 'screen', 'log', 'both', 'own_log', 'full', or a dictionary with the keys
    'stdout', 'stderr', 'both' and values out of 'screen', 'log', 'own_log'.
    """
    config = _normalized_output(output_config)
    return (
        launch_config.get_output_logger(process_name, "stdout", config),
        launch_config.get_output_logger(process_name, "stderr", config),
    )


def _normalized_output(
    given: str | Mapping[str, str | Collection[str]],
) -> Mapping[str, frozenset[str]]:
    if isinstance(given, str):
        if given not in OUTPUT_SHORTHANDS:
            raise ValueError(
                f"'{given}' is not a valid standard output config; "
                f"choose one of {sorted(OUTPUT_SHORTHANDS)}"
            )
        return OUTPUT_SHORTHANDS[given]
    config: dict[str, frozenset[str]] = {}
    for stream, sinks in given.items():
        chosen = frozenset({sinks} if isinstance(sinks, str) else sinks)
        if stream not in ("stdout", "stderr", "both") or not chosen <= set(SINKS):
            raise ValueError(
                f"output={given!r}: keys must be out of 'stdout', 'stderr', 'both' "
                f"and values out of {list(SINKS)}"
            )
        config[stream] = chosen
    return config


def _base_folder() -> Path:
    if os.environ.get("ROS_LOG_DIR"):
        return Path(os.environ["ROS_LOG_DIR"]).expanduser()
    home = os.environ.get("ROS_HOME") or os.path.join("~", ".ros")
    return Path(home).expanduser() / "log"
