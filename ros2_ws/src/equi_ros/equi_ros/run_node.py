# SPDX-License-Identifier: MIT
"""The main function of every node: initialise, spin, shut down, and the exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import rclpy
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from equi_ros.log_bridge import logging_to_ros
from equi_ros.node_process import end_in_time, leaving_in_time
from equi_ros.shutdown_signal import POLL_PERIOD_S, ShutdownSignal
from equi_ros.stale_shared_memory import remove_stale

EXIT_OK = 0
EXIT_FAILED = 1
"""The node ended because of an error that it had explained."""
EXIT_REFUSED = 3
"""The node refused to start: its configuration or a file that it needs must not be used."""


@contextmanager
def initialized(
    args: list[str] | None = None, on_signal: Callable[[], object] = lambda: None
) -> Iterator[ShutdownSignal]:
    """Rclpy from initialisation to shutdown, with signals raised only at safe places.

    rclpy's own handlers would end all communication before the block can clean up. `on_signal` is
    called when the first signal arrives.
    """
    # What killed processes left behind would fill the memory that this one needs.
    with suppress(OSError):
        remove_stale()
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    shutdown = ShutdownSignal(on_signal)
    shutdown.listen()
    try:
        yield shutdown
    finally:
        shutdown.ignore()
        rclpy.try_shutdown()
        # Python takes its handlers down before it ends; a late Ctrl-C must not look like a crash.
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_node(
    name: str,
    make: Callable[[], Node],
    args: list[str] | None = None,
    refusals: tuple[type[Exception], ...] = (),
) -> int:
    """Make a node and spin it until a signal or a shutdown of the graph; returns the exit code.

    After a signal the process ends within END_TIMEOUT_S, whatever it is busy with. A lifecycle
    node that is finalized ends too: with EXIT_FAILED if an error brought it there. A node that
    holds more than ROS lets go of it in a method `release`, which comes first.

    Args:
        name: logger name for the time before the node exists.
        make: builds the node.
        args: command line; None: that of the process.
        refusals: errors of `make` that are reported in one sentence, with EXIT_REFUSED.
    """
    with initialized(args, end_in_time) as shutdown:
        node: Node | None = None
        code = EXIT_OK
        executor = SingleThreadedExecutor()
        try:
            refused: tuple[type[Exception], ...] = (*refusals, ParameterException)
            try:
                node = make()
            except refused as error:
                rclpy.logging.get_logger(name).fatal(f"refused to start: {error}")
                code = EXIT_REFUSED
                return code
            executor.add_node(node)
            with logging_to_ros(node):
                shutdown.spin(
                    lambda: executor.spin_once(timeout_sec=POLL_PERIOD_S),
                    lambda: getattr(node, "is_finalized", False),
                )
            code = EXIT_FAILED if getattr(node, "failed", False) else EXIT_OK
        except (KeyboardInterrupt, ExternalShutdownException):
            pass
        finally:
            shutdown.ignore()
            if node is not None:
                getattr(node, "release", lambda: None)()
            with leaving_in_time(EXIT_FAILED if sys.exc_info()[0] else code):
                if node is not None:
                    node.destroy_node()
                executor.shutdown(timeout_sec=POLL_PERIOD_S)
                rclpy.try_shutdown()
    return code
