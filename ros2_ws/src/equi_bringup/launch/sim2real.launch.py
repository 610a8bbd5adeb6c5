# SPDX-License-Identifier: MIT
"""Everything: cameras to motion, in the simulated cell or on the robot.

ros2 launch equi_policy sim2real.launch.py                                  # simulated cell
ros2 launch equi_policy sim2real.launch.py episodes:=20 record:=true        # and evaluate
ros2 launch equi_policy sim2real.launch.py sim:=false robot_ip:=192.168.1.10 cell:=lab

Simulated and real cell differ only in the processes behind the same topics and ports. With
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

from equi_core.contract import PolicyContract
from equi_core.scene_seeds import TEST_SEED
from equi_ros.launching import BOOLEAN, ROBOT_SIDE, CellLaunch, cell_argument

HERE = Path(__file__).resolve().parent


def include(name, **arguments):
    """One of the pieces beside this file."""
    return IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(HERE / f"{name}.launch.py")),
        launch_arguments=[(key, str(value)) for key, value in arguments.items()],
    )


def choose_model(launch, simulated):
    """Folder of the policy and who drives: without a trained policy the expert, if simulated."""
    task, model = launch.value("task"), launch.value("model")
    folder = launch.path(model or f"models/{task}")
    if (folder / "contract.json").is_file():
        return folder, launch.value("driven_by")
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
    simulated = LaunchConfiguration("sim").perform(context) == "true"
    default = "sim" if simulated else "lab"
    launch = CellLaunch(context, HERE, LaunchConfiguration("cell").perform(context) or default)
    cell, value = launch.cell, launch.value
    if cell.simulated != simulated:
        raise RuntimeError(
            f"cell '{cell.name}' is {'simulated' if cell.simulated else 'real'}, but sim:="
            f"{value('sim')}; choose another cell or the other sim"
        )
    robot_ip = launch.robot_ip
    folder, driver = choose_model(launch, simulated)
    common = {"cell": cell.path, "model": folder, "autostart": "false"}
    robot_side = [
        include("control", robot_ip=robot_ip, **common),
        include("perception", ignore_calibration=value("ignore_calibration"), **common),
        include("policy", driven_by=driver, robot_ip=robot_ip, seed=value("seed"), **common),
        launch.lifecycle_manager(*ROBOT_SIDE),
        *evaluation(launch, driver, folder),
        *viewer(launch),
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
        include(
            "cell_sim", cell=cell.path, robot_ip=robot_ip, task=value("task"), seed=value("seed")
        ),
        waiting,
        RegisterEventHandler(OnProcessExit(target_action=waiting, on_exit=robot_side)),
    ]


def evaluation(launch, driver, folder):
    """The evaluator, if episodes are requested; when it ends, everything ends."""
    cell, value = launch.cell, launch.value
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
    if launch.flag("record"):
        arguments.append("--record")
    if not launch.flag("balanced"):
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


def viewer(launch):
    """RViz, where it is installed and requested."""
    if not launch.flag("view"):
        return []
    return [
        ExecuteProcess(
            cmd=["rviz2", "-d", str(HERE / "config" / "cell.rviz")], name="rviz2", output="screen"
        )
    ]


def generate_launch_description():
    """Arguments, then everything else once they are known."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "task",
                default_value="block_picking",
                choices=["block_picking", "block_pulling", "block_pushing", "drawer_opening"],
                description="task of the policy",
            ),
            DeclareLaunchArgument(
                "sim", default_value="true", choices=BOOLEAN, description="simulated cell"
            ),
            DeclareLaunchArgument(
                "robot_ip", default_value="", description="UR controller; empty: the cell's"
            ),
            DeclareLaunchArgument(
                "model", default_value="", description="policy folder; empty: models/<task>"
            ),
            cell_argument(default=""),
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
                choices=BOOLEAN,
                description="half movable-first, half immovable-first episodes",
            ),
            DeclareLaunchArgument(
                "record", default_value="false", choices=BOOLEAN, description="MCAP per episode"
            ),
            DeclareLaunchArgument("output", default_value="", description="folder of the results"),
            DeclareLaunchArgument(
                "view", default_value="false", choices=BOOLEAN, description="start RViz"
            ),
            DeclareLaunchArgument(
                "ignore_calibration",
                default_value="false",
                choices=BOOLEAN,
                description="use a calibration that must not be used; for rehearsals",
            ),
            OpaqueFunction(function=start),
        ]
    )
