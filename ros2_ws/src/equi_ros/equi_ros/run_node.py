"""How the nodes of the simulated cell start, spin and end."""

from __future__ import annotations

from collections.abc import Callable

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from equi_ros.shutdown_signal import HEARD_WITHIN_S, EndRequest


def run_node(make: Callable[[], Node], args: list[str] | None = None) -> int:
    """Spin a node until Ctrl-C or a shutdown of the graph; returns the exit status."""
    rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    end = EndRequest()
    end.listen()
    executor = SingleThreadedExecutor()
    node = None
    try:
        node = make()
        executor.add_node(node)
        end.repeat(lambda: executor.spin_once(timeout_sec=HEARD_WITHIN_S))
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        end.ignore()
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0
