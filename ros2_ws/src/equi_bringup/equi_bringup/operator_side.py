# SPDX-License-Identifier: MIT
"""What a launch starts for the person at the screen: evaluator, console, RViz; room for clouds."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from launch.actions import ExecuteProcess, SetEnvironmentVariable
from launch_ros.actions import Node

from equi_bringup.arguments import ArgumentError, whole_number
from equi_bringup.cell_launch import CellLaunch, process_environment, share_file
from equi_bringup.evaluation import Evaluation
from equi_bringup.policy_choice import PolicyChoice

_FAST_DDS_PROFILES = "FASTRTPS_DEFAULT_PROFILES_FILE"


def evaluator(launch: CellLaunch, policy: PolicyChoice) -> list[Node]:
    """The evaluator, if episodes are requested; when it ends, everything ends."""
    episodes = whole_number("episodes", launch.value("episodes"))
    if episodes == 0:
        return []
    plan = Evaluation(
        episodes=episodes,
        seed=whole_number("seed", launch.value("seed")),
        task=launch.value("task"),
        cell=launch.cell.name,
        driven_by=policy.driven_by,
        model=policy.folder,
        record=launch.flag("record"),
        balanced=launch.flag("balanced"),
        output=launch.value("output"),
    )
    return [
        launch.node(
            "equi_evaluation",
            "evaluate",
            "evaluator",
            {},
            may_end=True,
            arguments=plan.arguments(launch.cell.simulated),
            emulate_tty=sys.stdout.isatty(),  # a live status line belongs on a terminal only
        )
    ]


def console(launch: CellLaunch, policy: PolicyChoice) -> list[Node]:
    """The console in the browser, if it is asked for; nothing ends when it does."""
    if not launch.flag("console"):
        return []
    words = ["--task", launch.value("task"), "--cell", launch.cell.name]
    words += ["--model", str(policy.folder), "--seed", launch.value("seed")]
    words += ["--host", launch.value("console_host")]
    words += ["--port", str(whole_number("console_port", launch.value("console_port")))]
    # As on a robot, if asked for: then the operator arranges the scenes and gives the labels.
    words += ["--simulated"] if launch.cell.simulated and not launch.flag("arrange") else []
    words += ["--output", launch.value("output")] if launch.value("output") else []
    return [
        launch.node(
            *("equi_console", "console", "console", {}),
            block="-",
            required=False,
            arguments=words,
        )
    ]


def viewer(launch: CellLaunch) -> list[ExecuteProcess]:
    """RViz, where it is installed and requested."""
    if not launch.flag("view"):
        return []
    require_rviz()
    words = ["rviz2", "-d", str(share_file("config", "cell.rviz"))]
    words += ["--ros-args", "-r", f"__ns:={launch.namespace}"]
    words += ["-r", "/tf:=tf", "-r", "/tf_static:=tf_static"]
    return [
        ExecuteProcess(
            cmd=words, name="rviz2", output="screen", additional_env=process_environment()
        )
    ]


def require_rviz() -> None:
    """Raise ArgumentError where RViz is not installed: before anything starts."""
    if shutil.which("rviz2") is None:
        raise ArgumentError(
            "view:=true starts RViz, and there is no rviz2 on the PATH; install it"
            " (ros-jazzy-rviz2) and source ROS, or leave view:=false and look with Foxglove"
            " (config/foxglove_layout.json) or the console (console:=true)"
        )


def large_messages() -> list[Any]:
    """Room in shared memory for point clouds, unless the user has settings of his own.

    As delivered, Fast DDS loses pieces of messages of several megabytes.
    """
    if os.environ.get(_FAST_DDS_PROFILES):
        return []
    return [SetEnvironmentVariable(_FAST_DDS_PROFILES, str(share_file("config", "fastdds.xml")))]
