# SPDX-License-Identifier: MIT
"""Python's logging -> the node's logger, so that every line reaches the console and /rosout.

The libraries know no ROS and log by `logging.getLogger(__name__)`. While the bridge is open, what
they say appears as a child of the node's logger: `rtde_driver.equi_control.driver.driver`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rclpy.node import Node

_OURS = ("equi_", "ur_emulator")


class RosLogHandler(logging.Handler):
    """Hands records over to ROS: ours from INFO on, those of other libraries from WARNING on."""

    def __init__(self, node: Node) -> None:
        super().__init__(logging.INFO)
        self._root = node.get_logger()
        self._children: dict[str, Any] = {}
        self.addFilter(
            lambda record: record.levelno >= logging.WARNING or record.name.startswith(_OURS)
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record; an error here must not stop whoever logs."""
        try:
            logger = self._children.get(record.name)
            if logger is None:
                logger = self._children[record.name] = self._root.get_child(record.name)
            message = self.format(record)
            # One line per severity: rclpy lets a line of code log with one severity only.
            if record.levelno >= logging.CRITICAL:
                logger.fatal(message)
            elif record.levelno >= logging.ERROR:
                logger.error(message)
            elif record.levelno >= logging.WARNING:
                logger.warning(message)
            else:
                logger.info(message)
        except Exception:
            self.handleError(record)


@contextmanager
def logging_to_ros(node: Node) -> Iterator[None]:
    """A block in which Python's logging goes to the logger of a node."""
    root = logging.getLogger()
    handler, level = RosLogHandler(node), root.level
    root.addHandler(handler)
    root.setLevel(min(level or logging.INFO, logging.INFO))
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
