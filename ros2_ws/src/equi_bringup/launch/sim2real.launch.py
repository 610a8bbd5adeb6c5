# SPDX-License-Identifier: MIT
"""Everything: cameras to motion, in the simulated cell or on the robot.

ros2 launch equi_policy sim2real.launch.py                                  # simulated cell
ros2 launch equi_policy sim2real.launch.py episodes:=20 record:=true        # and evaluate
ros2 launch equi_policy sim2real.launch.py sim:=false robot_ip:=192.168.1.10 cell:=lab

Simulated and real cell differ only in the processes behind the same topics and ports. With
`episodes:=0` the system waits for RunEpisode goals; otherwise it runs them and ends, which it does
in the simulated cell only.
"""

from launch.actions import LogInfo, RegisterEventHandler
from launch.event_handlers import OnProcessExit

from equi_bringup import arguments as known
from equi_bringup.arguments import BOOLEAN, Argument, ArgumentError
from equi_bringup.cell_launch import ROBOT_SIDE, describe
from equi_bringup.failures import after
from equi_bringup.operator_side import console, evaluator, large_messages, viewer
from equi_bringup.policy_choice import choose_policy

ARGUMENTS = (
    known.TASK,
    Argument("sim", "true", "simulated cell", BOOLEAN),
    known.cell_argument(default=""),
    *known.COMMON,
    Argument("model", "", "policy: a name or a path with a slash; empty: the task's"),
    known.DRIVEN_BY,
    known.MODE,
    known.I_KNOW,
    known.CALIBRATION,
    known.IGNORE_CALIBRATION,
    Argument(
        "cameras", "external", "realsense: start the cell's cameras too", ("external", "realsense")
    ),
    known.PROFILE,
    Argument("episodes", "0", "number of episodes to run (simulated cell); 0: wait for goals"),
    known.SEED,
    Argument("balanced", "true", "half movable-first, half immovable-first episodes", BOOLEAN),
    Argument("record", "false", "a bag per episode", BOOLEAN),
    Argument("output", "", "folder of the results"),
    Argument("view", "false", "start RViz", BOOLEAN),
    Argument("console", "false", "the operator's console in the browser", BOOLEAN),
    Argument("console_host", "127.0.0.1", "its address; any but loopback needs a token"),
    Argument("console_port", "8477", "its port"),
    Argument(
        "arrange",
        "false",
        "rehearse in the simulated cell: scene helper and labels by the operator, as on a robot",
        BOOLEAN,
    ),
)


def start(launch):
    """The pieces in order: the robot first, then whatever needs it."""
    cell, value, simulated = launch.cell, launch.value, launch.flag("sim")
    if cell.simulated != simulated:
        raise ArgumentError(
            f"cell '{cell.name}' is {'simulated' if cell.simulated else 'real'}, but sim:="
            f"{value('sim')}; choose another cell or the other sim"
        )
    if simulated and value("cameras") != "external":
        raise ArgumentError("cameras:=realsense is for a real cell; the simulated one has its own")
    policy = choose_policy(value("model"), value("task"), value("driven_by"), simulated)
    common = {"model": policy.folder, "autostart": "false"}
    calibration = {name: value(name) for name in ("calibration", "ignore_calibration")}
    robot_side = [
        launch.include("description", view=value("view")),
        launch.include("control", mode=value("mode"), i_know=value("i_know"), **common),
        launch.include("perception", **calibration, **common),
        launch.include("policy", driven_by=policy.driven_by, seed=value("seed"), **common),
        launch.lifecycle_manager(*ROBOT_SIDE),
        *evaluator(launch, policy),
        *console(launch, policy),
        *viewer(launch),
    ]
    started = [
        *large_messages(),
        LogInfo(
            msg=f"cell {cell.name} in namespace {launch.namespace}, robot {launch.robot_ip}, task "
            f"{value('task')}, mode {value('mode')}, driven by the {policy.driven_by} "
            f"({policy.folder})"
        ),
    ]
    if not simulated:
        cameras = value("cameras") == "realsense"
        return [*started, *([launch.include("cameras")] if cameras else []), *robot_side]
    waiting = launch.process(
        *("equi_cell_sim", "wait_ready", "--address", launch.robot_ip),
        name="wait_for_the_cell",
        required=False,
    )
    simulation = {name: value(name) for name in ("task", "seed", "profile")}
    return [
        *started,
        launch.include("cell_sim", **simulation),
        waiting,
        RegisterEventHandler(
            OnProcessExit(target_action=waiting, on_exit=after("wait_for_the_cell", robot_side))
        ),
    ]


def generate_launch_description():
    """Arguments, then everything else once they are known."""
    return describe(__file__, ARGUMENTS, start)
