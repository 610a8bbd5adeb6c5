"""How the nodes of the simulated cell start, spin and end."""

from __future__ import annotations

from collections.abc import Callable

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node


def run_node(make: Callable[[], Node], args: list[str] | None = None) -> int:
    """Spin a node until Ctrl-C or a shutdown of the graph; returns the exit status."""
    rclpy.init(args=args)
    node = None
    try:
        node = make()
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except RuntimeError:
        # A shutdown in the middle of taking a message shows as an error of the binding.
        if rclpy.ok():
            raise
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0
