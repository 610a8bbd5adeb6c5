# SPDX-License-Identifier: MIT
"""What the launch files share: the cell of a launch, its arguments, and its processes.

Uses nothing that ROS's own launch does not document; tests/contracts checks this module with the
launch files. It runs in the Python of `ros2`, which need not have the libraries of the nodes:
processes are started by their installed executables, and nothing heavy is imported here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    IncludeLaunchDescription,
    OpaqueFunction,
)
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import ExecutableInPackage

from equi_bringup.arguments import Argument, refuse_unknown
from equi_bringup.failures import end_of_launch
from equi_bringup.robot_address import robot_address
from equi_core.cell_file import CellFile
from equi_core.locations.find import find_calibration, find_cell_file, find_model
from equi_ros.node_process import LAUNCH_PID

DRIVER = "rtde_driver"
ROBOT_SIDE = ("depth_fusion", "policy", DRIVER)
"""Lifecycle nodes in the order of bringing up: the arm is started last and stopped first."""
_OPENBLAS_THREADS = "OPENBLAS_NUM_THREADS"
# Frames belong to the cell: two cells must not mix their trees.
_REMAPPINGS = [("/tf", "tf"), ("/tf_static", "tf_static")]


def describe(
    file: str, arguments: Sequence[Argument], start: Callable[[CellLaunch], list[Any]]
) -> LaunchDescription:
    """The description of a launch file: its arguments, and what `start` makes of them."""

    def checked(context: LaunchContext) -> list[Any]:
        refuse_unknown(file, context.argv, sys.argv, arguments)
        return start(CellLaunch(context))

    declared = [
        DeclareLaunchArgument(
            argument.name,
            default_value=argument.default,
            description=argument.description,
            choices=None if argument.choices is None else list(argument.choices),
        )
        for argument in arguments
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=checked)])


def share_file(*parts: str) -> Path:
    """An installed file of this package."""
    return Path(get_package_share_directory("equi_bringup"), *parts)


def package_is_installed(package: str) -> bool:
    """Whether ROS knows a package."""
    try:
        get_package_share_directory(package)
    except PackageNotFoundError:
        return False
    return True


class CellLaunch:
    """The arguments of a launch, and the processes of its cell."""

    def __init__(self, context: LaunchContext) -> None:
        self._context = context
        cell = self.value("cell") or ("sim" if self.value("sim") == "true" else "lab")
        self.cell = CellFile.load(find_cell_file(cell))

    def value(self, argument: str) -> str:
        """An argument's value."""
        return LaunchConfiguration(argument).perform(self._context)

    def flag(self, argument: str) -> bool:
        """Whether an argument is "true"."""
        return self.value(argument) == "true"

    @property
    def namespace(self) -> str:
        """Absolute namespace of the cell's nodes, with one that was pushed around the include.

        Stated for every node: what an event handler starts is outside the scope of the push.
        """
        pushed = LaunchConfiguration("ros_namespace", default="").perform(self._context)
        given = self.value("namespace")
        joined = given if given.startswith("/") else f"{pushed}/{given}"
        return "/" + joined.strip("/")

    @property
    def robot_ip(self) -> str:
        """Address of the cell's robot."""
        cell = self.cell
        return robot_address(self.value("robot_ip"), cell.robot_ip, cell.simulated, self.namespace)

    @property
    def model(self) -> Path:
        """Folder of the argument `model`."""
        return find_model(self.value("model"))

    @property
    def calibration(self) -> Path:
        """The argument `calibration`, or where that of the cell is."""
        given = self.value("calibration")
        return Path(given).expanduser() if given else find_calibration(self.cell.name)

    def include(self, piece: str, **arguments: object) -> IncludeLaunchDescription:
        """Another launch file of this package, for the same cell."""
        own = {"namespace": self.namespace, "frame_prefix": self.value("frame_prefix")}
        own |= {"cell": str(self.cell.path.absolute()), "robot_ip": self.robot_ip}
        given = {**own, **arguments}
        return IncludeLaunchDescription(
            PythonLaunchDescriptionSource(str(share_file("launch", f"{piece}.launch.py"))),
            launch_arguments=[(name, str(value)) for name, value in given.items()],
        )

    def node(
        self,
        package: str,
        executable: str,
        name: str,
        own: dict[str, Any],
        *,
        block: str = "",
        required: bool = True,
        may_end: bool = False,
        arguments: Sequence[str] = (),
        emulate_tty: bool = False,
    ) -> Node:
        """A node with the cell's parameters and some of its own.

        Args:
            package: package of the executable.
            executable: what is started.
            name: name of the node.
            own: parameters that the launch decides.
            block: block of the cell file, if it is not called like the node; "-": none.
            required: the launch ends when the node does.
            may_end: the node ends by itself when its work is done; others must not.
            arguments: words of its command line.
            emulate_tty: the node writes to a terminal.
        """
        own = {**own, "frame_prefix": self.value("frame_prefix")}
        parameters = own if block == "-" else self.cell.parameters(block or name, **own)
        return Node(
            package=package,
            executable=executable,
            name=name,
            namespace=self.namespace,
            parameters=[typed(parameters)],
            remappings=_REMAPPINGS,
            arguments=list(arguments),
            output="screen",
            emulate_tty=emulate_tty,
            additional_env=process_environment(),
            on_exit=end_of_launch(name, may_end=may_end) if required else None,
        )

    def process(
        self, package: str, executable: str, *words: str, name: str, required: bool = True
    ) -> ExecuteProcess:
        """A process that is no node."""
        return ExecuteProcess(
            cmd=[ExecutableInPackage(package=package, executable=executable), *words],
            name=name,
            output="screen",
            additional_env=process_environment(),
            on_exit=end_of_launch(name) if required else None,
        )

    def lifecycle_manager(self, *nodes: str, name: str = "lifecycle_manager") -> Node:
        """Brings lifecycle nodes up in this order; the launch ends when it has brought them down.

        In a real cell the driver is only configured: nothing moves before an operator says so.
        """
        parameters: dict[str, Any] = {"node_names": list(nodes)}
        if not self.cell.simulated and DRIVER in nodes:
            parameters["manual_activation"] = [DRIVER]
        return self.node("equi_ros", "lifecycle_manager_node", name, parameters, block="-")

    def own_manager(self, node: str) -> list[Node]:
        """A manager for a node that is launched alone, unless `autostart` is "false"."""
        if not self.flag("autostart"):
            return []
        return [self.lifecycle_manager(node, name=f"lifecycle_manager_{node}")]


def process_environment() -> dict[Any, str]:
    """What every process of a cell finds in its environment.

    The process id of the launch, which it must not outlive, however that ends. And one thread for
    OpenBLAS, unless the user wants more: its threads wait by spinning, which in a process with
    real-time priority keeps everybody else from the processors; the matrices here are small.
    """
    threads = os.environ.get(_OPENBLAS_THREADS, "1")
    return {LAUNCH_PID: str(os.getpid()), _OPENBLAS_THREADS: threads}


def typed(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters whose texts stay texts: launch reads them as YAML, and a serial as a number."""
    return {
        name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
        for name, value in parameters.items()
    }
