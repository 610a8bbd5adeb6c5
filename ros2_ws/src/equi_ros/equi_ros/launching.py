# SPDX-License-Identifier: MIT
"""What the launch files share: the cell of a launch, paths of the project, and its nodes.

Uses nothing that ROS's own launch does not document; tests/contracts checks this module with the
launch files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from launch import LaunchContext
from launch.actions import DeclareLaunchArgument, EmitEvent
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from equi_core.cell_file import CellFile, find_cell_file, find_project_root
from equi_ros.node_process import LAUNCH_PID

BOOLEAN = ["true", "false"]
DRIVER = "rtde_driver"
ROBOT_SIDE = ("depth_fusion", "policy", DRIVER)
"""Lifecycle nodes in the order of bringing up: the arm is started last and stopped first."""


def cell_argument(default: str = "sim") -> DeclareLaunchArgument:
    """The argument `cell`, the same in every launch file."""
    description = "cell name or file" + ("" if default else "; empty: sim or lab")
    return DeclareLaunchArgument("cell", default_value=default, description=description)


def ends_with_launch() -> dict[str, str]:
    """Environment of a process that must not outlive the launch, however that ends."""
    return {LAUNCH_PID: str(os.getpid())}


def autostart_argument() -> DeclareLaunchArgument:
    """The argument `autostart`, the same in every launch file of one lifecycle node."""
    return DeclareLaunchArgument(
        "autostart",
        default_value="true",
        choices=BOOLEAN,
        description="configure and activate the node; false: somebody else does",
    )


class CellLaunch:
    """The arguments of a launch, and the nodes of its cell."""

    def __init__(self, context: LaunchContext, folder: Path, cell: str = "") -> None:
        """Read the named cell, or that of the argument `cell`; `folder` holds the launch file."""
        self._context = context
        self._folder = folder
        self.cell = CellFile.load(find_cell_file(cell or self.value("cell"), folder))

    def value(self, argument: str) -> str:
        """An argument's value."""
        return LaunchConfiguration(argument).perform(self._context)

    def flag(self, argument: str) -> bool:
        """Whether an argument is "true"."""
        return self.value(argument) == "true"

    @property
    def robot_ip(self) -> str:
        """The argument `robot_ip`, or the cell's own."""
        return self.value("robot_ip") or self.cell.robot_ip

    def path(self, path: str | Path) -> Path:
        """A path of the project; an absolute one stays as it is."""
        given = Path(path)
        return given if given.is_absolute() else find_project_root(self._folder) / given

    def node(
        self,
        package: str,
        executable: str,
        name: str,
        own: dict[str, Any],
        *,
        block: str = "",
        required: bool = True,
    ) -> Node:
        """A node with the cell's parameters and some of its own.

        Args:
            package: package of the executable.
            executable: what is started.
            name: name of the node.
            own: parameters that the launch decides.
            block: block of the cell file, if it is not called like the node.
            required: the whole launch ends when the node does.
        """
        ended = EmitEvent(event=Shutdown(reason=f"{name} ended"))
        return Node(
            package=package,
            executable=executable,
            name=name,
            parameters=[self.cell.parameters(block or name, **own)],
            output="screen",
            additional_env=ends_with_launch(),
            on_exit=[ended] if required else None,
        )

    def lifecycle_manager(self, *nodes: str, name: str = "lifecycle_manager") -> Node:
        """Brings lifecycle nodes up in this order; the launch ends when it has brought them down.

        In a real cell the driver is only configured: nothing moves before an operator says so.
        """
        parameters: dict[str, Any] = {"node_names": list(nodes)}
        if not self.cell.simulated and DRIVER in nodes:
            parameters["manual_activation"] = [DRIVER]
        return Node(
            package="equi_ros",
            executable="lifecycle_manager_node",
            name=name,
            parameters=[parameters],
            output="screen",
            additional_env=ends_with_launch(),
            on_exit=[EmitEvent(event=Shutdown(reason=f"{name} ended"))],
        )

    def own_manager(self, node: str) -> list[Node]:
        """A manager for a node that is launched alone, unless `autostart` is "false"."""
        if not self.flag("autostart"):
            return []
        return [self.lifecycle_manager(node, name=f"lifecycle_manager_{node}")]
