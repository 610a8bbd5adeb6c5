# SPDX-License-Identifier: MIT
"""Law: a recorded episode, played back, drives perception and policy again, to the same numbers.

Real cell, real record of the depth images; then neither robot nor cameras, but a player of the bag
and `use_sim_time`. Slow: `make test-slow`.
"""

from __future__ import annotations

import array
import json
from pathlib import Path
from typing import Any

import pytest
from families import ManagedProcess, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.ros, pytest.mark.timeout(900)]

START_S = 240.0
PATIENCE_S = 90.0
PLAYER = "rosbag2_player"
CAMERAS = ("cam_left", "cam_right")


def test_a_played_episode_gives_the_same_observations_and_the_same_commands(
    ros_launch, ros2, ros_probe, processes, repository_root, loopback_address, tmp_path
) -> None:
    record, episode_id = _record_an_episode(
        ros_launch, ros2, processes, repository_root, loopback_address, tmp_path
    )
    seen = _play(ros2, ros_probe, repository_root, record, episode_id)
    then, now = _inputs_and_images(_messages(record, "/observation")), _inputs_and_images(seen[0])
    common = set(then) & set(now)
    # Which robot state is the newest when the clouds are complete is a matter of milliseconds.
    assert len(common) >= len(then) / 2, (len(then), len(now), len(common))
    assert all(then[inputs] == now[inputs] for inputs in common)
    recorded = {message.step_index: _numbers(message) for message in _messages(record, COMMANDS)}
    played = {message.step_index: _numbers(message) for message in seen[1]}
    assert len(recorded) > 1
    # Without the referee, who ended the episode then, the policy goes on.
    assert {index: played.get(index) for index in recorded} == recorded


COMMANDS = "/delta_command"


def _record_an_episode(
    ros_launch, ros2, processes, root: Path, address: str, folder: Path
) -> tuple[Path, str]:
    launched = ros_launch("equi_policy", "sim2real.launch.py", robot_ip=address)
    launched.wait_for_text("every node is up", timeout_s=START_S)
    evaluation = ros2(
        *("run", "equi_evaluation", "evaluate", "--episodes", "1", "--any-order"),
        *("--ground-truth", "--record", "--record-sensors", "depth", "--cell", "sim"),
        *("--model", root / "models" / "block_picking", "--output", folder / "run"),
    )
    assert evaluation.wait_for_exit(START_S) == 0, evaluation.output
    launched.press_ctrl_c()
    assert launched.wait_for_exit() == 0, launched.output
    wait_until(lambda: not processes.living(), 30.0, "the cell is gone")
    (line,) = (folder / "run" / "results.jsonl").read_text().splitlines()
    result = json.loads(line)
    return folder / "run" / result["record"], result["episode_id"]


def _play(
    ros2, probe: Any, root: Path, record: Path, episode_id: str
) -> tuple[list[Any], list[Any]]:
    """Observations and commands while the bag is played."""
    from equi_interfaces.msg import DeltaCommand, Observation

    from equi_ros import qos

    cell = root / "launch" / "cells" / "sim.yaml"
    model = {"use_sim_time": "true", "simulated": "true", "model": root / "models/block_picking"}
    perception = model | {"cell": "sim", "calibration": root / "calibration/results/sim"}
    for name in CAMERAS:
        perception |= {f"{name}.serial": f"simulated-{name}", f"{name}.input": "depth"}
        perception[f"publishers.{name}.depth"] = PLAYER
    perception["publishers.robot_state"] = PLAYER
    # Nobody there whom one could ask to go home, to open the gripper, or to arrange a scene.
    absent = ("home_action", "open_service", "stop_service", "driver_reset_service")
    policy = model | dict.fromkeys((*absent, "scene_reset_service", "success_service"), "''")
    for topic in ("robot_state", "executed_command", "safety_status"):
        policy[f"publishers.{topic}"] = PLAYER
    for executable, name, values in (
        (("equi_perception", "depth_fusion_node"), "/depth_fusion", perception),
        (("equi_policy", "policy_node"), "/policy", policy),
    ):
        words = [word for key, value in values.items() for word in ("-p", f"{key}:={value}")]
        node: ManagedProcess = ros2("run", *executable, "--ros-args", "--params-file", cell, *words)
        for transition in ("configure", "activate"):
            asked = ros2("lifecycle", "set", name, transition, "--spin-time", "60")
            assert asked.wait_for_exit(PATIENCE_S) == 0, (asked.output, node.output)
    observations: list[Any] = []
    commands: list[Any] = []
    probe.node.create_subscription(Observation, "/observation", observations.append, qos.RECORDED)
    probe.node.create_subscription(DeltaCommand, COMMANDS, commands.append, qos.COMMAND)
    goal = json.dumps({"episode_id": episode_id})
    run = ("/policy/run_episode", "equi_interfaces/action/RunEpisode")
    ros2("action", "send_goal", *run, goal).wait_for_text("Goal accepted", PATIENCE_S)
    player = ros2(
        *("run", "equi_evaluation", "play_bag", record, "--clock-topics-all", "--exclude-topics"),
        *("/observation", "/perception_status", COMMANDS, "/diagnostics"),
    )
    assert player.wait_for_exit(PATIENCE_S) == 0, player.output
    return observations, commands


def _messages(record: Path, topic: str) -> list[Any]:
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    (file,) = record.glob("*.mcap")
    with file.open("rb") as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        return [message for _, _, _, message in reader.iter_decoded_messages(topics=[topic])]


def _inputs_and_images(observations: list[Any]) -> dict[tuple[tuple[int, int], ...], bytes]:
    """Image by the stamps of what it was made from."""
    return {
        tuple(
            (stamp.sec, stamp.nanosec) for stamp in (*item.cloud_stamps, item.robot_stamp)
        ): bytes(memoryview(array.array("f", item.image)))
        for item in observations
    }


def _numbers(command: Any) -> tuple[float, ...]:
    step = command.translation
    return (command.gripper_closedness, step.x, step.y, step.z, command.yaw_rad)
