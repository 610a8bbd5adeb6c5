# SPDX-License-Identifier: MIT
"""Conformance: the file of a measured robot, the profile fitted to it, and the table."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.signal

from ur_emulator import conformance_table
from ur_emulator.conformance_file import (
    ConformanceFile,
    ConformanceFileError,
    ForceReading,
    GripperTiming,
    RateJitter,
    RobotIdentity,
    SliderPoint,
    StopMeasurement,
    TrackingLag,
)
from ur_emulator.constants import MODELS
from ur_emulator.fitting import Fit, fit
from ur_emulator.main import main
from ur_emulator.profile import LENIENT, PROFILES, STRICT, Profile, ProfileError, profile_for

DOCUMENT = Path(__file__).resolve().parents[2] / "ros2_ws/docs/emulator.md"
ROBOT = RobotIdentity("bench 3", "20133512345", "ur5", "URSoftware 3.15.8.106339")
FULL = ConformanceFile(
    ROBOT,
    measured_at="2025-01-31T12:00:00+00:00",
    # Ramps behind a servo lag of 98 ms whose time passes at 0.75 and 0.6 (see below).
    slider=(SliderPoint(0.5, 0.993, 0.5, 0.5, 1.0), SliderPoint(0.2, 0.984, 0.2, 0.2, 1.0)),
    stops=(
        StopMeasurement("program_end", 0, 0.5, 0.0765, 0.26),
        StopMeasurement("protective_stop", 0, 0.5, 0.019, 0.05),
    ),
    gripper=GripperTiming(3.1, 0.7, 0.8, 0.03, 0.05),
    tracking=TrackingLag(0.1, 300.0, 1.0, 0.13, 0.85, 0.01),
    force=ForceReading((1.0, -2.0, 3.0), 2.5, (0.1, 0.2, 0.3), 0.2),
    jitter=RateJitter(125.0, 0.00904, 0.012),
    script_start_s=0.08,
    unlock_delay_s=5.2,
)


def test_a_file_reads_back_as_it_was_written(tmp_path: Path) -> None:
    FULL.save(tmp_path / "robot.json")
    assert ConformanceFile.load(tmp_path / "robot.json") == FULL


def test_a_file_with_nothing_but_the_robot_is_a_file(tmp_path: Path) -> None:
    ConformanceFile(ROBOT).save(tmp_path / "robot.json")
    assert ConformanceFile.load(tmp_path / "robot.json").slider == ()


def changed(**changes: Any) -> str:
    data = json.loads(FULL.to_json())
    for key, value in changes.items():
        part = data
        *path, last = key.split("__")
        for name in path:
            part = part[int(name) if name.isdigit() else name]
        part[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "must be a JSON object"),
        ("{}", "robot"),
        (changed(surprise=1), "unknown key 'surprise'"),
        (changed(robot__model="ur9"), "robot.model is 'ur9'; known: ur3"),
        (changed(robot__name=""), "robot.name"),
        (changed(robot__name=7), "must be a str"),
        (changed(force__noise_n=math.nan), "force.noise_n is nan"),
        (changed(force__bias_n=[1.0, 2.0]), "has 2 numbers; it must have 3"),
        (changed(tracking__delay_s="fast"), "must be a number"),
        (changed(tracking__delay_s=10**400), "must be a number up to 1e12"),
        (changed(tracking__delay_s=True), "must be a number"),
        (changed(slider__0__servo_speed_ratio=5.0), "slider.servo_speed_ratio is 5.0; allowed"),
        (changed(stops__0__cause="tired"), "stops.cause is 'tired'; known: program_end"),
        (changed(stops__0__joint=6), "stops.joint is 6"),
        (changed(format_version=2), "format_version is 2; this version reads 1"),
        (changed(unlock_delay_s=-1.0), "unlock_delay_s is -1.0"),
    ],
)
def test_a_damaged_file_is_refused_with_what_is_allowed(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "robot.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConformanceFileError) as caught:
        ConformanceFile.load(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("data", "words"), [(b"\xff\xfe", "not UTF-8"), (b" " * 1_000_001, "larger than")]
)
def test_a_file_that_is_no_text_or_endless_is_refused(
    tmp_path: Path, data: bytes, words: str
) -> None:
    path = tmp_path / "robot.json"
    path.write_bytes(data)
    with pytest.raises(ConformanceFileError, match=words):
        ConformanceFile.load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConformanceFileError, match=r"nothing\.json"):
        ConformanceFile.load(tmp_path / "nothing.json")


def test_a_fit_takes_over_what_was_measured_and_leaves_the_rest() -> None:
    fitted = fit(STRICT, FULL)
    profile = fitted.profile

    assert profile.servo_slider_effect == pytest.approx(0.5, abs=0.03)
    assert profile.move_slider_effect == pytest.approx(1.0)
    assert profile.force_bias_n == (1.0, -2.0, 3.0)
    assert profile.force_noise_n == 2.5
    assert profile.unlock_s == 5.2
    assert profile.program_start_s == 0.08
    assert profile.gripper_activation_s == 3.1
    assert (profile.gripper_echo_s, profile.gripper_motion_s) == (0.03, 0.05)
    # Half a radian per second stopped within 0.0765 rad, of which 10 ms are the joints' lag and
    # 16 ms the emulator's own reaction.
    assert profile.program_end_rad_s2 == pytest.approx(0.25 / (2 * (0.0765 - 0.013)), rel=0.01)
    assert profile.protective_stop_scale == pytest.approx(0.25 / (2 * 0.006) / 13.0, rel=0.02)
    assert profile.cycle_jitter_s == pytest.approx(0.0005, rel=0.01)
    assert profile.collision_lag_m == STRICT.collision_lag_m
    assert "collision_lag_m" not in fitted.measured
    assert fitted.robot == "bench 3"


@pytest.mark.parametrize("dead_time_s", [0.0, 0.03])
@pytest.mark.parametrize("servo_lag_s", [0.03, 0.1, 0.2])
def test_a_fit_recovers_lags_and_dead_time_from_a_sine(
    servo_lag_s: float, dead_time_s: float
) -> None:
    """Expected values from the transfer function of two lags in series."""
    frequency_hz, joint_lag_s, lookahead_s = 1.0, 0.012, 0.1
    omega = 2 * math.pi * frequency_hz
    response = 1 / ((1 + 1j * omega * servo_lag_s) * (1 + 1j * omega * joint_lag_s))
    delay_s = -float(np.angle(response)) / omega + dead_time_s
    joint_delay_s = math.atan(omega * joint_lag_s) / omega
    lag = TrackingLag(lookahead_s, 300.0, frequency_hz, delay_s, abs(response), joint_delay_s)

    profile = fit(LENIENT, ConformanceFile(ROBOT, tracking=lag)).profile

    assert profile.joint_lag_s == pytest.approx(joint_lag_s, rel=1e-6)
    assert profile.servo_lag_factor * lookahead_s == pytest.approx(servo_lag_s, rel=1e-3)
    assert profile.servo_dead_time_s == pytest.approx(dead_time_s, abs=1e-5)


@pytest.mark.parametrize("effect", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("lag_s", [0.05, 0.14])
def test_a_fit_recovers_how_far_the_slider_slows_a_stream(effect: float, lag_s: float) -> None:
    """Expected ratios from the step response of a lag that the slider makes longer."""
    times_s = np.arange(0.0, 1.4, 0.001)
    commanded = (1.0 - np.cos(np.pi * np.minimum(times_s / 0.3, 1.0))) / 2
    window = (times_s >= 0.6) & (times_s < 1.05)

    def speed(slider: float) -> float:
        share = 1.0 - effect * (1.0 - slider)
        _, followed, _ = scipy.signal.lsim(([1.0], [lag_s / share, 1.0]), commanded, times_s)
        return float(np.median(followed[window]))

    points = tuple(
        SliderPoint(slider, speed(slider) / speed(1.0), slider, slider, 1.0)
        for slider in (1.0, 0.5, 0.2)
    )
    profile = replace(LENIENT, servo_lag_factor=lag_s / 0.1)
    fitted = fit(profile, ConformanceFile(ROBOT, slider=points)).profile
    assert fitted.servo_slider_effect == pytest.approx(effect, abs=0.03)


def test_a_measurement_beyond_what_can_be_emulated_is_taken_at_the_nearest_end() -> None:
    slider = (SliderPoint(0.5, 1.2, 0.0, 0.5, 1.0),)
    profile = fit(LENIENT, ConformanceFile(ROBOT, slider=slider)).profile
    assert profile.servo_slider_effect == 0.0
    assert profile.move_slider_effect == 1.0


# Table -----------------------------------------------------------------------------------------


def test_every_behaviour_has_a_row_with_a_known_status() -> None:
    assert set(conformance_table.PROFILE_BASIS) == {item.name for item in fields(Profile)}
    for row in conformance_table.rows(Fit(STRICT)):
        assert row.status.startswith(("documented (", "guessed", "not emulated")), row


def test_what_was_measured_says_on_which_robot() -> None:
    rows = {row.behaviour.split(":")[0]: row for row in conformance_table.rows(fit(STRICT, FULL))}
    assert rows["servo_slider_effect"].status == "measured on bench 3"
    assert float(rows["servo_slider_effect"].value) == pytest.approx(0.5, abs=0.03)
    assert rows["collision_lag_m"].status.startswith("guessed")


def test_the_documents_table_is_the_one_in_the_code() -> None:
    assert conformance_table.as_markdown() in DOCUMENT.read_text(encoding="utf-8")


def test_the_command_prints_the_table_of_a_fitted_robot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FULL.save(tmp_path / "robot.json")
    file = str(tmp_path / "robot.json")

    assert main(["--conformance", "--conformance-file", file, "--unlock-s", "1"]) == 0

    lines = {line.split(":")[0]: line for line in capsys.readouterr().out.splitlines()}
    assert lines["force_noise_n"].endswith("2.5 | measured on bench 3")
    # Set by hand: no longer what was measured.
    assert "measured" not in lines["unlock_s"]


def test_a_file_of_another_model_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    FULL.save(tmp_path / "robot.json")
    file = str(tmp_path / "robot.json")
    assert main(["--conformance", "--model", "ur10", "--conformance-file", file]) == 2
    assert "measured on a ur5 ('bench 3'); start with --model ur5" in capsys.readouterr().err


# Profile ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"speed_slider": 1.5}, "speed_slider is 1.5; allowed: 0.0 to 1.0"),
        ({"force_noise_n": math.nan}, "force_noise_n is nan"),
        ({"joint_limits_rad": (1.0, 2.0)}, "has 2 numbers"),
        ({"safety_planes": ((1.0, 1.0, 1.0, 0.0),)}, "normal of length 1"),
    ],
)
def test_a_behaviour_out_of_range_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ProfileError, match=words.replace("(", r"\(")):
        replace(STRICT, **changes)


def test_profiles_are_known_by_name_and_e_series_arms_measure_force_better() -> None:
    assert profile_for("lenient", MODELS["ur5"]) is PROFILES["lenient"]
    strict = profile_for("strict", MODELS["ur5e"])
    assert strict.force_noise_n < STRICT.force_noise_n
    with pytest.raises(ProfileError, match="known: lenient, strict"):
        profile_for("angry", MODELS["ur5"])


def test_each_behaviour_can_be_set_on_the_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--profile", "strict", "--speed-slider", "0.2", "--no-link-collisions"]
    options += ["--joint-limits-rad", "3.0", "--force-bias-n=1,-2,3", "--factory-seed", "7"]
    options += ["--safety-plane=0,0,1,0.05", "--safety-plane=1,0,0,0.5"]
    assert main(["--conformance", *options]) == 0
    values = {
        line.split(":")[0]: line.split(" | ")[1] for line in capsys.readouterr().out.splitlines()
    }
    assert values["speed_slider"] == "0.2"
    assert values["link_collisions"] == "no"
    assert values["joint_limits_rad"] == "3"
    assert values["force_bias_n"] == "1, -2, 3"
    assert values["factory_seed"] == "7"
    assert values["safety_planes"] == "0, 0, 1, 0.05, 1, 0, 0, 0.5"


def test_a_bad_option_is_refused_with_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--conformance", "--force-bias-n", "a,b,c"]) == 2
    assert "force_bias_n is 'a,b,c'" in capsys.readouterr().err
