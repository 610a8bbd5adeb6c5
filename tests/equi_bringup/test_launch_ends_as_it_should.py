# SPDX-License-Identifier: MIT
"""The launch as a user starts it, under whichever `ros2 launch` is installed: ROS's own or ours.

Exit codes are the point: ROS's own launch forgives every process, so the launch files must not.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path

import pytest
from families import ManagedProcess, ProcessFamily, wait_until
from ros_origin import LAUNCH_IS_ROSS_OWN, PIP_ROS2_IS_INSTALLED

_LOG = logging.getLogger(__name__)
START_S = 240.0
"""Generous: a busy machine takes its time to start ten processes."""
END_S = 3.0
"""Every process ends within 2 s of being asked to; the rest is for launch and for looking."""
FRONT_DOOR = ("equi_policy", "sim2real.launch.py")
SHOWN = (
    *("robot_description", "tcp_pose", "observation_preview", "cam_left/color/image_raw", "tf"),
    *("cam_left/depth/points", "cam_right/depth/points", "safety_status", "perception_status"),
)
"""What the layouts for RViz and Foxglove show, and needs no `view:=true`."""
NOISE = ("has died", "Traceback", "Warning", "FAULT", "[ERROR]", "[FATAL]", "onnection")
"""What a launch that ends as it should does not say while it does."""


@pytest.mark.skipif(not LAUNCH_IS_ROSS_OWN, reason="ROS's own launch is not installed")
def test_this_is_ross_own_launch() -> None:
    import launch_ros.actions

    # The subset of pip_ros2 has neither, and says so.
    assert hasattr(launch_ros.actions, "ComposableNodeContainer")
    assert hasattr(launch_ros.actions, "SetParameter")


@pytest.mark.skipif(LAUNCH_IS_ROSS_OWN, reason="ROS's own launch is installed")
def test_this_is_the_launch_of_pip_ros2() -> None:
    assert PIP_ROS2_IS_INSTALLED


@pytest.mark.ros
def test_the_front_door_shows_the_arguments_of_the_file_behind_it(ros2) -> None:
    shown = ros2("launch", *FRONT_DOOR, "--show-args")
    assert shown.wait_for_exit() == 0, shown.output
    for name in ("task", "namespace", "frame_prefix", "cameras", "profile", "calibration"):
        assert f"'{name}':" in shown.output


@pytest.mark.ros
@pytest.mark.parametrize(
    ("argument", "hint"),
    [
        ({"tsk": "block_picking"}, "task"),
        ({"episodes": "many"}, "whole number"),
        ({"model": "block_pikcing"}, "did you mean 'block_picking'"),
        ({"cell": "labb"}, "did you mean 'lab'"),
        ({"robot_ip": "192.168.1.10"}, "loopback"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_wrong_argument_fails_the_launch_before_anything_starts(
    argument: dict[str, str], hint: str, ros_launch, processes: ProcessFamily
) -> None:
    launched = ros_launch(*FRONT_DOOR, **argument)
    assert launched.wait_for_exit() == 1, launched.output
    assert hint in launched.output
    assert "process started" not in launched.output
    assert processes.living() == {}


def start(ros_launch, address: str, **arguments: object) -> ManagedProcess:
    return ros_launch(*FRONT_DOOR, robot_ip=address, **arguments)


def start_and_wait(ros_launch, address: str, **arguments: object) -> ManagedProcess:
    launched = start(ros_launch, address, **arguments)
    launched.wait_for_text("every node is up", timeout_s=START_S)
    return launched


def require_all_gone(processes: ProcessFamily, within_s: float = END_S) -> None:
    asked_s = time.monotonic()
    wait_until(lambda: not processes.living(), within_s, "the last process to vanish")
    _LOG.info("the last process has gone after %.2f s", time.monotonic() - asked_s)


def require_silent_end(launched: ManagedProcess) -> None:
    """Nothing complained, and every process ended with code 0."""
    _, _, end = launched.output.partition("every node is up")
    assert [line for line in end.splitlines() if any(word in line for word in NOISE)] == []
    assert end.count("finished cleanly") >= 9, launched.output


@pytest.mark.slow
@pytest.mark.ros
def test_two_episodes_end_the_launch_with_success_and_without_a_complaint(
    ros_launch, processes: ProcessFamily, loopback_address: str, tmp_path: Path
) -> None:
    launched = start(
        ros_launch, loopback_address, episodes=2, balanced="false", output=tmp_path / "out"
    )
    assert launched.wait_for_exit(START_S) == 0, launched.output
    assert (tmp_path / "out" / "report.html").is_file()
    assert "2 of 2 so far" in " ".join(launched.output.split())
    assert processes.living() == {}
    require_silent_end(launched)


@pytest.mark.slow
@pytest.mark.ros
def test_a_fault_of_the_driver_during_the_last_episode_fails_the_launch(
    ros_launch, ros_probe, processes: ProcessFamily, loopback_address: str, tmp_path: Path
) -> None:
    from equi_interfaces.msg import ExecutedCommand

    from ur_emulator.client import EmulatorClient

    launched = start(
        ros_launch, loopback_address, episodes=1, balanced="false", output=tmp_path / "out"
    )
    ros_probe.wait_for_message(ExecutedCommand, "/executed_command", timeout_s=START_S)
    with EmulatorClient(loopback_address) as emulator:
        emulator.request("protective_stop")
    assert launched.wait_for_exit(START_S) == 1, launched.output
    assert "FAULTED" in launched.output
    assert "evaluator has failed with exit code 1" in launched.output
    assert processes.living() == {}


@pytest.mark.slow
@pytest.mark.ros
def test_a_node_that_refuses_its_configuration_fails_the_launch(
    ros_launch, processes: ProcessFamily, loopback_address: str, tmp_path: Path
) -> None:
    launched = start(ros_launch, loopback_address, calibration=tmp_path)
    assert launched.wait_for_exit(START_S) == 1, launched.output
    assert "calibration" in launched.output
    assert processes.living() == {}


@pytest.mark.slow
@pytest.mark.ros
def test_ctrl_c_ends_every_process_in_time_and_with_code_0(
    ros_launch, processes: ProcessFamily, loopback_address: str
) -> None:
    launched = start_and_wait(ros_launch, loopback_address)
    launched.press_ctrl_c()
    require_all_gone(processes)
    assert launched.wait_for_exit() == 0, launched.output
    require_silent_end(launched)


@pytest.mark.slow
@pytest.mark.ros
def test_ctrl_c_right_after_the_driver_was_deactivated_is_no_failure(
    ros_launch, ros_probe, processes: ProcessFamily, loopback_address: str
) -> None:
    launched = start_and_wait(ros_launch, loopback_address)
    # The driver starts its servo process anew, and the emulated robot has no client to wait for.
    assert ros_probe.change_state("/rtde_driver", "deactivate", START_S)
    launched.press_ctrl_c()
    require_all_gone(processes)
    assert launched.wait_for_exit() == 0, launched.output
    require_silent_end(launched)


@pytest.mark.slow
@pytest.mark.ros
def test_ctrl_c_ends_processes_that_still_import(
    ros_launch, processes: ProcessFamily, loopback_address: str
) -> None:
    launched = start(ros_launch, loopback_address)
    launched.wait_for_text(r"\[lifecycle_manager_node-\d+\]: process started", START_S)
    launched.press_ctrl_c()
    require_all_gone(processes)
    assert launched.wait_for_exit() == 0, launched.output


@pytest.mark.slow
@pytest.mark.ros
def test_a_node_that_is_killed_fails_the_launch(
    ros_launch, processes: ProcessFamily, loopback_address: str
) -> None:
    launched = start_and_wait(ros_launch, loopback_address)
    victim = next(pid for pid, line in processes.living().items() if "policy_node" in line)
    os.kill(victim, signal.SIGKILL)
    assert launched.wait_for_exit() == 1, launched.output
    wait_until(lambda: not processes.living(), 30.0, "the last process to vanish")


@pytest.mark.slow
@pytest.mark.ros
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_launch_that_is_killed_leaves_nobody_behind(
    ros_launch, processes: ProcessFamily, loopback_address: str, number: signal.Signals
) -> None:
    launched = start_and_wait(ros_launch, loopback_address)
    launched.signal_alone(number)
    require_all_gone(processes)


@pytest.mark.slow
@pytest.mark.ros
def test_two_cells_in_namespaces_finish_an_episode_each_side_by_side(
    ros_launch, ros_probe, processes: ProcessFamily, tmp_path: Path
) -> None:
    from equi_interfaces.msg import DeltaCommand

    commands: dict[str, list[DeltaCommand]] = {"left": [], "right": []}
    for name, heard in commands.items():
        ros_probe.node.create_subscription(DeltaCommand, f"/{name}/delta_command", heard.append, 10)
    cells = {
        name: ros_launch(
            *FRONT_DOOR,
            namespace=name,
            frame_prefix=f"{name}_",
            episodes=1,
            balanced="false",
            output=tmp_path / name,
        )
        for name in commands
    }
    for name in cells:
        ros_probe.wait_for_node(f"/{name}/rtde_driver", timeout_s=2 * START_S)
    names = ros_probe.node_names() - {"/test_probe"}
    assert {name.split("/")[1] for name in names} == {"left", "right"}
    shown = {f"/{name}/{topic}" for name in cells for topic in SHOWN}
    wait_until(lambda: shown <= set(ros_probe.topics()), START_S, "the topics of the layouts")
    assert {topic for topic in ros_probe.topics() if topic.startswith("/tf")} == set()
    for name, launched in cells.items():
        assert launched.wait_for_exit(2 * START_S) == 0, launched.output
        assert (tmp_path / name / "report.html").is_file()
        assert "1 of 1 so far" in " ".join(launched.output.split())
        # From the robot's state through the observation to the command.
        assert {m.header.frame_id for m in commands[name]} == {f"{name}_base_link"}
    assert processes.living() == {}
