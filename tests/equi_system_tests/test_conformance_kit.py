# SPDX-License-Identifier: MIT
"""The conformance kit end to end: an emulator fitted to a robot's file behaves like that robot.

The "robots" are two emulators that are set up differently. The kit measures both; a third one
gets the file of the first, is measured by the same kit, and must be like the first and unlike the
second.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from ur_emulator.conformance_file import ConformanceFile
from ur_emulator.launching import EmulatorProcess

KIT = [sys.executable, "-m", "equi_control.conformance.main"]

FIRST = {
    "servo_slider_effect": 1.0,
    "joint_lag_s": 0.03,
    "servo_lag_factor": 1.4,
    "force_bias_n": (12.0, -7.0, 3.0),
    "force_drift_n": 0.0,
    "force_noise_n": 5.0,
    "program_end_rad_s2": 1.2,
    "protective_stop_scale": 0.25,
    "gripper_speed_scale": 0.5,
    "gripper_echo_s": 0.08,
    "gripper_motion_s": 0.02,
    "gripper_activation_s": 1.5,
    "unlock_s": 1.5,
}
SECOND = {
    "servo_slider_effect": 0.0,
    "joint_lag_s": 0.01,
    "servo_lag_factor": 0.7,
    "force_bias_n": (-4.0, 2.0, 0.0),
    "force_drift_n": 0.0,
    "force_noise_n": 1.0,
    "program_end_rad_s2": 5.0,
    "protective_stop_scale": 1.0,
    "gripper_speed_scale": 1.0,
    "gripper_echo_s": 0.02,
    "gripper_motion_s": 0.07,
    "gripper_activation_s": 0.5,
    "unlock_s": 0.5,
}


def run_kit(address: str, path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [*KIT, "--robot-ip", address, "--rehearse", "--name", path.stem]
    return subprocess.run(
        [*command, "--output", str(path), *more],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


def measured(path: Path) -> dict[str, float]:
    """The numbers of a file that a fitted emulator must reproduce."""
    file = ConformanceFile.load(path)
    assert file.gripper is not None
    assert file.tracking is not None
    assert file.force is not None
    slow = file.slider[-1]
    numbers = {
        "slider, streamed": slow.servo_speed_ratio,
        "slider, moves": slow.move_speed_ratio,
        "tracking delay": file.tracking.delay_s,
        "tracking amplitude": file.tracking.amplitude_ratio,
        "joint delay": file.tracking.joint_delay_s,
        "force bias x": file.force.bias_n[0],
        "force bias y": file.force.bias_n[1],
        "force noise": file.force.noise_n,
        "gripper closes": file.gripper.close_s,
        "gripper activates": file.gripper.activation_s,
        "gripper echo": file.gripper.echo_delay_s,
        "gripper motion": file.gripper.motion_delay_s,
    }
    for cause in ("program_end", "protective_stop"):
        stops = [stop for stop in file.stops if stop.cause == cause]
        numbers[f"{cause} travel"] = float(np.median([stop.joint_travel_rad for stop in stops]))
        numbers[f"{cause} time"] = float(np.median([stop.time_s for stop in stops]))
    return numbers


TOLERANCE = {
    "slider, streamed": 0.05,
    "slider, moves": 0.05,
    "tracking delay": 0.012,
    "tracking amplitude": 0.03,
    "joint delay": 0.005,
    "force bias x": 0.6,
    "force bias y": 0.6,
    "force noise": 0.5,
    "gripper closes": 0.08,
    "gripper activates": 0.2,
    "gripper echo": 0.02,
    "gripper motion": 0.02,
    "program_end travel": 0.006,
    "program_end time": 0.06,
    "protective_stop travel": 0.006,
    "protective_stop time": 0.06,
}
"""How far a second measurement of the same robot may be off [as the number's unit]."""
SAME_IN_BOTH = {"slider, moves"}
"""What the two robots do alike; everything else tells them apart."""


@pytest.mark.slow
def test_an_emulator_fitted_to_a_file_behaves_like_the_robot_that_was_measured(tmp_path):
    numbers = {}
    for name, settings in (("first", FIRST), ("second", SECOND)):
        with EmulatorProcess(profile="strict", delay_scale=1.0, behaviours=settings) as robot:
            ran = run_kit(robot.address, tmp_path / f"{name}.json")
        assert ran.returncode == 0, ran.stderr + ran.stdout
        numbers[name] = measured(tmp_path / f"{name}.json")

    with EmulatorProcess(delay_scale=1.0, conformance_file=tmp_path / "first.json") as fitted:
        ran = run_kit(fitted.address, tmp_path / "fitted.json")
    assert ran.returncode == 0, ran.stderr + ran.stdout
    numbers["fitted"] = measured(tmp_path / "fitted.json")

    sys.stdout.write(json.dumps(numbers, indent=1))
    for what, allowed in TOLERANCE.items():
        first, second, again = (numbers[key][what] for key in ("first", "second", "fitted"))
        assert abs(again - first) <= allowed, f"{what}: {again} is not {first}"
        if what not in SAME_IN_BOTH:
            assert abs(again - second) > allowed, f"{what}: {again} could be {second}"


def test_a_robot_that_is_not_ready_is_left_alone_and_old_data_are_kept(tmp_path):
    with EmulatorProcess() as robot:
        before = robot.api.status()["actual_q"]
        precious = tmp_path / "robot.json"
        precious.write_text("measured before")
        taken = run_kit(robot.address, precious)
        robot.api.request("protective_stop")
        stopped = run_kit(robot.address, tmp_path / "a.json")
        assert robot.api.status()["actual_q"] == before
    assert (taken.returncode, stopped.returncode) == (1, 1)
    assert "nothing is overwritten" in taken.stderr
    assert precious.read_text() == "measured before"
    assert "safety status bits" in stopped.stderr
    assert not (tmp_path / "a.json").exists()


def test_nothing_moves_unless_a_person_confirms_the_step(tmp_path):
    path = tmp_path / "robot.json"
    with EmulatorProcess() as robot:
        before = robot.api.status()["actual_q"]
        ran = subprocess.run(
            [*KIT, "--robot-ip", robot.address, "--output", str(path), "--name", "x"],
            input="5000\n",  # mm of clearance; then nobody is at the keyboard
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert robot.api.status()["actual_q"] == before
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "nobody is at the keyboard" in ran.stderr
    steps = [json.loads(line) for line in path.with_suffix(".log.jsonl").read_text().splitlines()]
    assert [step["step"] for step in steps] == ["aborted"]


@pytest.mark.slow
def test_an_anomaly_stops_the_arm_and_keeps_what_was_measured(tmp_path):
    path = tmp_path / "robot.json"
    with EmulatorProcess() as robot:

        def stop_the_moving_arm() -> None:
            while robot.api.status()["joint_speed_rad_s"] < 0.1:
                time.sleep(0.02)
            robot.api.request("protective_stop")

        threading.Thread(target=stop_the_moving_arm, daemon=True).start()
        ran = run_kit(robot.address, path, "--no-gripper")
        assert robot.api.status()["runtime_state"] != "PLAYING"
    assert ran.returncode == 1
    assert "stopped." in ran.stderr
    assert str(path) in ran.stderr
    kept = ConformanceFile.load(path)  # the emulator's own reader
    assert kept.jitter is not None
    assert kept.force is not None
    assert kept.script_start_s is not None
    assert kept.tracking is None
    log = path.with_suffix(".log.jsonl").read_text().splitlines()
    assert json.loads(log[-1])["step"] == "aborted"
