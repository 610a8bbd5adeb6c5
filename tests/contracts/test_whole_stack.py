# SPDX-License-Identifier: MIT
"""The whole graph, launched as a user launches it: an episode, and the faults around perception.

Real nodes, DDS, ur_rtde and physics; faults are injected while it runs. Slow: `make test-slow`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from families import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.ros]

START_S = 240.0
"""Generous: a busy machine takes its time to start nine processes."""


def start(ros_launch, repository_root, address, **arguments):
    return ros_launch(
        "equi_policy", "sim2real.launch.py", robot_ip=address, driven_by="expert", **arguments
    )


def wait_for_status(ros_probe, state, cause="", timeout_s=60.0):
    from equi_interfaces.msg import PerceptionStatus

    from equi_ros import qos

    return ros_probe.wait_for_message(
        PerceptionStatus,
        "/perception_status",
        lambda m: m.state == state and all(cause in r for r in m.reasons[:1]),
        timeout_s=timeout_s,
        qos=qos.LATCHED,
    )


def set_parameter(ros_probe, node, name, value):
    from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
    from rcl_interfaces.srv import SetParameters

    coded = (
        ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=value)
        if isinstance(value, bool)
        else ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
    )
    request = SetParameters.Request(parameters=[Parameter(name=name, value=coded)])
    answer = ros_probe.call(SetParameters, f"{node}/set_parameters", request, timeout_s=60.0)
    assert answer.results[0].successful, answer.results[0].reason


def observation_count(ros_probe):
    """How many observations perception has published, from its own counter."""
    from diagnostic_msgs.msg import DiagnosticArray

    message = ros_probe.wait_for_message(
        DiagnosticArray,
        "/diagnostics",
        lambda m: any(s.name == "depth_fusion" for s in m.status),
        timeout_s=60.0,
    )
    values = next(s for s in message.status if s.name == "depth_fusion").values
    return int(next(v.value for v in values if v.key == "observations"))


def test_camera_faults_stop_the_observations_and_pass_by_themselves(
    ros_launch, ros_probe, repository_root, loopback_address
):
    from equi_interfaces.msg import PerceptionStatus

    launched = start(ros_launch, repository_root, loopback_address)
    launched.wait_for_text("every node is up", timeout_s=START_S)
    wait_for_status(ros_probe, PerceptionStatus.READY)

    for fault, value, normal in (("frozen", True, False), ("stamp_offset_s", -30.0, 0.0)):
        set_parameter(ros_probe, "/cam_left_camera", fault, value)
        waiting = wait_for_status(ros_probe, PerceptionStatus.WAITING, "cam_left")
        assert waiting.reasons[0].startswith(("cloud_stale", "cloud_skew")), waiting.reasons
        before = observation_count(ros_probe)
        assert observation_count(ros_probe) == before, "a blind perception publishes nothing"
        set_parameter(ros_probe, "/cam_left_camera", fault, normal)
        wait_for_status(ros_probe, PerceptionStatus.READY)

    camera = int(
        launched.wait_for_text(r"camera_node-\d+\]: process started with pid \[(\d+)\]")[1]
    )
    os.kill(camera, signal.SIGKILL)
    waiting = wait_for_status(ros_probe, PerceptionStatus.WAITING, "cam_")
    assert waiting.reasons[0].startswith("cloud_")
    assert launched.is_running, "a dead camera stops no driver: the arm holds"


def test_an_episode_runs_from_cameras_to_motion_and_its_record_replays(
    ros_launch, repository_root, tmp_path, loopback_address
):
    launched = start(
        ros_launch,
        repository_root,
        loopback_address,
        episodes=1,
        record="true",
        balanced="false",
        output=tmp_path / "run",
    )
    code = launched.wait_for_exit(timeout_s=START_S + 300)
    assert code == 0, launched.output[-3000:]
    (line,) = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    result = json.loads(line)
    assert result["outcome"] in ("SUCCEEDED", "STEP_LIMIT", "OBJECT_LOST"), result
    assert result["steps"] > 0
    assert (tmp_path / "run" / "report.html").is_file()
    _check_record(tmp_path / "run" / result["record"], result["steps"])


def _check_record(record: Path, steps: int) -> None:
    """Each step: one observation, one command, one report, in this order; steps count upwards."""
    from equi_evaluation.recording import read_recording
    from equi_ros.stamps import nanoseconds

    messages = [(m.topic, m.message) for m in read_recording(record)]
    observations = {m.sequence: m for topic, m in messages if topic == "observation"}
    commands = [m for topic, m in messages if topic == "delta_command"]
    reports = [m for topic, m in messages if topic == "executed_command"]
    done = [report for report in reports if report.outcome != 2]
    assert [report.requested.step_index for report in done] == list(range(steps))
    previous_end_ns = 0
    for command in commands:
        seen = observations[command.observation_sequence]
        assert (seen.episode_id, seen.step_index) == (command.episode_id, command.step_index)
        assert nanoseconds(seen.header.stamp) >= previous_end_ns, (
            "an image from before the end of the last step was used"
        )
        report = next(r for r in reports if r.requested.observation_sequence == seen.sequence)
        if report.outcome != 2:
            previous_end_ns = nanoseconds(report.header.stamp)


def test_a_dead_policy_ends_the_launch_and_the_arm_stands_still(
    ros_launch, ros_probe, repository_root, loopback_address
):
    from equi_interfaces.action import RunEpisode
    from equi_interfaces.msg import RobotState
    from rclpy.action import ActionClient
    from rclpy.qos import qos_profile_sensor_data

    from ur_emulator.client import EmulatorClient

    launched = start(ros_launch, repository_root, loopback_address)
    launched.wait_for_text("every node is up", timeout_s=START_S)
    client = ActionClient(ros_probe.node, RunEpisode, "/policy/run_episode")
    wait_until(lambda: client.wait_for_server(0.1), 60, "the RunEpisode action")
    client.send_goal_async(RunEpisode.Goal(episode_id="doomed", seed=1))
    ros_probe.wait_for_message(
        RobotState,
        "/robot_state",
        lambda m: m.moving and m.episode_id == "doomed",
        timeout_s=120,
        qos=qos_profile_sensor_data,
    )
    policy = int(
        launched.wait_for_text(r"policy_node-\d+\]: process started with pid \[(\d+)\]")[1]
    )
    os.kill(policy, signal.SIGKILL)
    launched.wait_for_text("policy ended|sending signal", timeout_s=60)

    def standing() -> bool:
        try:
            with EmulatorClient(loopback_address, timeout_s=1.0) as robot:
                return robot.status()["joint_speed_rad_s"] < 0.01
        except OSError:
            return True  # the emulated robot has ended with the launch
        except ValueError:
            return True

    wait_until(standing, 30, "the arm to stand still")
    launched.wait_for_exit(timeout_s=90)


@pytest.mark.parametrize(
    ("damage", "word"),
    [("missing", "contract.json"), ("foreign", "weights_sha256"), ("nan", "not finite")],
)
def test_a_model_that_must_not_run_is_refused(ros_probe, processes, tmp_path, damage, word):
    from equi_policy.bench_policy_step import write_random_policy

    model = tmp_path / "model"
    model.mkdir()
    if damage != "missing":
        write_random_policy(model)
    if damage == "foreign":
        data = bytearray((model / "policy.safetensors").read_bytes())
        data[-1] ^= 1
        (model / "policy.safetensors").write_bytes(bytes(data))
    if damage == "nan":
        _poison(model)
    node = processes.start(
        [sys.executable, "-m", "equi_policy.policy_node", "--ros-args", "-p", f"model:={model}"]
    )
    assert not ros_probe.change_state("/policy", "configure", timeout_s=180)
    node.wait_for_text("refused to configure: .*" + word)
    assert ros_probe.lifecycle_state("/policy") == "unconfigured"


def _poison(model: Path) -> None:
    """Weights with a NaN and the right digest: only running them shows the damage."""
    import hashlib
    import math

    from safetensors.torch import load_file, save_file

    from equi_core.contract import PolicyContract

    tensors = load_file(model / "policy.safetensors")
    tensors["mean.bias"][0] = math.nan
    save_file(tensors, model / "policy.safetensors")
    contract = json.loads((model / "contract.json").read_text())
    digest = hashlib.sha256((model / "policy.safetensors").read_bytes()).hexdigest()
    contract["weights_sha256"] = digest
    del contract["contract_sha256"]
    PolicyContract.from_json(json.dumps(contract)).save(model / "contract.json")


@pytest.mark.parametrize(
    ("calibration", "word"),
    [("nowhere", "no calibration"), ("failed", "failed"), ("expired", "expired")],
)
def test_a_calibration_that_must_not_be_used_is_refused(
    ros_probe, processes, repository_root, tmp_path, calibration, word
):
    import dataclasses

    from equi_core.calibration import CellCalibration
    from equi_core.contract import PolicyContract

    model, folder = tmp_path / "model", tmp_path / "calibration"
    model.mkdir()
    PolicyContract(task="block_picking").save(model / "contract.json")
    sound = CellCalibration.load(repository_root / "calibration" / "results" / "sim")
    changes: dict[str, dict[str, Any]] = {
        "failed": {"passed": False, "problems": ("cam_left has failed to stay still",)},
        "expired": {"created_utc": "2020-01-01T00:00:00+00:00", "valid_for_days": 30.0},
    }
    if calibration != "nowhere":
        dataclasses.replace(sound, **changes[calibration]).save(folder / "calibration.yaml")
    words = [f"model:={model}", f"calibration:={folder}", "cell:=sim"]
    serials = [f"{camera}.serial:=simulated-{camera}" for camera in ("cam_left", "cam_right")]
    node = processes.start(
        [
            *(sys.executable, "-m", "equi_perception.depth_fusion_node", "--ros-args"),
            *(word for parameter in (*words, *serials) for word in ("-p", parameter)),
        ]
    )
    assert not ros_probe.change_state("/depth_fusion", "configure", timeout_s=180)
    node.wait_for_text("refused to configure: .*" + word)
    assert ros_probe.lifecycle_state("/depth_fusion") == "unconfigured"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_launch_that_dies_without_a_word_leaves_no_process_behind(
    processes, ros_domain_id, ros_probe, loopback_address, number
):
    """Started as ROS's own launch starts them: nothing but the environment ties them to it."""
    launch = processes.start(
        [sys.executable, "-c", DYING_LAUNCH, loopback_address],
        {"ROS_DOMAIN_ID": str(ros_domain_id)},
    )
    launch.wait_for_text("started 2 processes", timeout_s=60)
    assert ros_probe.change_state("/rtde_driver", "configure", timeout_s=START_S)
    assert ros_probe.change_state("/rtde_driver", "activate", timeout_s=START_S)
    assert len(processes.living()) >= 4, "the launch, the emulator, the driver and its servo"

    launch.signal_alone(number)

    wait_until(lambda: not processes.living(), 30.0, "every process has ended")


DYING_LAUNCH = """
import os, subprocess, sys
environment = {**os.environ, "EQUI_LAUNCH_PID": str(os.getpid())}
address = sys.argv[1]
def start(*words):
    subprocess.Popen(words, env=environment, start_new_session=True)
code = "import sys; from {} import executables; sys.exit(executables.{}())"
start(sys.executable, "-c", code.format("equi_cell_sim", "emulator"), "--address", address)
start(sys.executable, "-c", code.format("equi_control", "rtde_driver_node"), "--ros-args",
    "-p", f"robot_ip:={address}", "-p", "connect_timeout_s:=120.0", "-p", "servo_silence_s:=30.0",
    "-p", "servo.driver_silence_s:=30.0", "-p", "servo.max_state_age_s:=30.0",
    "-p", "link.watchdog_hz:=1.0")
print("started 2 processes", flush=True)
import time
while True:
    time.sleep(1.0)
"""
