"""Everything: cameras to motion, in the simulated cell or on the robot.

ros2 launch equi_policy sim2real.launch.py                                  # simulated cell
ros2 launch equi_policy sim2real.launch.py episodes:=20 record:=true        # and evaluate
ros2 launch equi_policy sim2real.launch.py sim:=false robot_ip:=192.168.1.10 cell:=lab

Simulated and real cell differ only in which processes stand behind the same topics and ports. With
`episodes:=0` the system waits for RunEpisode goals; otherwise it runs them and ends, which it does
in the simulated cell only.
"""

import sys
import tempfile
from pathlib import Path

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from equi_core.cell_file import CellFile, find_project_root
from equi_core.contract import PolicyContract
from equi_core.scene_seeds import TEST_SEED

HERE = Path(__file__).resolve().parent


def include(name, **arguments):
    """One of the pieces beside this file."""
    return IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(HERE / f"{name}.launch.py")),
        launch_arguments=[(key, str(value)) for key, value in arguments.items()],
    )


def choose_model(root, task, model, simulated):
    """Folder of the policy and who drives: without a trained policy the expert, if simulated."""
    folder = root / (model or f"models/{task}")
    if (folder / "contract.json").is_file():
        return folder, "policy"
    if model or not simulated:
        raise RuntimeError(
            f"no policy at {folder} (contract.json is missing); train one with equi-train and "
            "equi-export, or give model:=<folder>"
        )
    stand_in = Path(tempfile.mkdtemp(prefix="equi_expert_"))
    PolicyContract(task=task).save(stand_in / "contract.json")
    return stand_in, "expert"


def start(context):
    """The pieces in order: the robot first, then whatever needs it."""

    def value(name):
        return LaunchConfiguration(name).perform(context)

    root = find_project_root(HERE)
    simulated = value("sim") == "true"
    name = value("cell") or ("sim" if simulated else "lab")
    path = Path(name) if name.endswith(".yaml") else root / "launch" / "cells" / f"{name}.yaml"
    cell = CellFile.load(path)
    if cell.simulated != simulated:
        raise RuntimeError(
            f"cell '{cell.name}' is {'simulated' if cell.simulated else 'real'}, but sim:="
            f"{value('sim')}; choose another cell or the other sim"
        )
    robot_ip = value("robot_ip") or cell.section("robot")["robot_ip"]
    folder, driver = choose_model(root, value("task"), value("model"), simulated)
    if value("driven_by") == "expert":
        driver = "expert"
    common = {"cell": path, "model": folder}
    robot_side = [
        include("control", robot_ip=robot_ip, **common),
        include("perception", ignore_calibration=value("ignore_calibration"), **common),
        include("policy", driven_by=driver, robot_ip=robot_ip, seed=value("seed"), **common),
        *evaluation(value, cell, driver, folder),
        *viewer(value),
    ]
    started = [
        LogInfo(
            msg=f"cell {cell.name}, robot {robot_ip}, task {value('task')}, driven by the "
            f"{driver} ({folder})"
        )
    ]
    if not simulated:
        return started + robot_side
    waiting = ExecuteProcess(
        cmd=[sys.executable, "-m", "equi_cell_sim.wait_ready", "--address", robot_ip],
        name="wait_for_the_cell",
        output="screen",
    )
    return [
        *started,
        include("cell_sim", cell=path, robot_ip=robot_ip, task=value("task"), seed=value("seed")),
        waiting,
        RegisterEventHandler(OnProcessExit(target_action=waiting, on_exit=robot_side)),
    ]


def evaluation(value, cell, driver, folder):
    """The evaluator, if episodes are wanted; when it ends, everything ends."""
    episodes = int(value("episodes"))
    if episodes == 0:
        return []
    if not cell.simulated:
        # A launch hands no keyboard on to its processes, and the operator has to answer.
        raise RuntimeError(
            f"episodes:={episodes} works in the simulated cell only: here an operator arranges the "
            "scenes and gives the labels. Leave it out, and run beside this launch: ros2 run "
            f"equi_evaluation evaluate --episodes {episodes} --task {value('task')} "
            f"--cell {cell.name} --model {folder}"
        )
    arguments = [
        "--episodes",
        str(episodes),
        "--seed",
        value("seed"),
        "--task",
        value("task"),
        "--cell",
        cell.name,
        "--driven-by",
        driver,
        "--model",
        str(folder),
        "--ground-truth",
    ]
    if value("record") == "true":
        arguments.append("--record")
    if value("balanced") == "false":
        arguments.append("--any-order")
    if value("output"):
        arguments += ["--output", value("output")]
    return [
        Node(
            package="equi_evaluation",
            executable="evaluate",
            name="evaluator",
            arguments=arguments,
            output="screen",
            emulate_tty=sys.stdout.isatty(),  # a live status line belongs on a terminal only
            on_exit=EmitEvent(event=Shutdown(reason="the evaluation has ended")),
        )
    ]


def viewer(value):
    """RViz, where it is installed and wanted."""
    if value("view") != "true":
        return []
    return [
        ExecuteProcess(
            cmd=["rviz2", "-d", str(HERE / "config" / "cell.rviz")], name="rviz2", output="screen"
        )
    ]


def generate_launch_description():
    """Arguments, then everything else once they are known."""
    booleans = ["true", "false"]
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "task",
                default_value="block_picking",
                choices=["block_picking", "block_pulling", "block_pushing", "drawer_opening"],
                description="task of the policy",
            ),
            DeclareLaunchArgument(
                "sim", default_value="true", choices=booleans, description="simulated cell"
            ),
            DeclareLaunchArgument(
                "robot_ip", default_value="", description="UR controller; empty: the cell's"
            ),
            DeclareLaunchArgument(
                "model", default_value="", description="policy folder; empty: models/<task>"
            ),
            DeclareLaunchArgument(
                "cell", default_value="", description="cell name or file; empty: sim or lab"
            ),
            DeclareLaunchArgument(
                "driven_by",
                default_value="policy",
                choices=["policy", "expert"],
                description="expert: the scripted expert in place of the policy (simulation)",
            ),
            DeclareLaunchArgument(
                "episodes",
                default_value="0",
                description="evaluate so many, then end (simulated cell); 0: wait",
            ),
            DeclareLaunchArgument(
                "seed",
                default_value=str(TEST_SEED),
                description="seed of the first scene; by default one that no policy was trained on",
            ),
            DeclareLaunchArgument(
                "balanced",
                default_value="true",
                choices=booleans,
                description="half movable-first, half immovable-first episodes",
            ),
            DeclareLaunchArgument(
                "record", default_value="false", choices=booleans, description="MCAP per episode"
            ),
            DeclareLaunchArgument("output", default_value="", description="folder of the results"),
            DeclareLaunchArgument(
                "view", default_value="false", choices=booleans, description="start RViz"
            ),
            DeclareLaunchArgument(
                "ignore_calibration",
                default_value="false",
                choices=booleans,
                description="use a calibration that must not be used; for rehearsals",
            ),
            OpaqueFunction(function=start),
        ]
    )
