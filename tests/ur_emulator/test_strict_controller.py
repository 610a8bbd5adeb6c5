# SPDX-License-Identifier: MIT
"""The strict profile, cycle by cycle and without sockets: what a real arm would not forgive."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from ur_emulator.arms import KinematicArm
from ur_emulator.constants import MODELS, RobotMode, RuntimeState, SafetyMode
from ur_emulator.controller.controller import Controller
from ur_emulator.controller.output_variables import output_variables
from ur_emulator.controller.safety_system import Delays
from ur_emulator.controller.script_text import Upload
from ur_emulator.mechanics.contact import Obstacle
from ur_emulator.mechanics.kinematics import HOME_RAD, Kinematics
from ur_emulator.mechanics.links import LINKS
from ur_emulator.profile import LENIENT, STRICT, Profile

FloatArray = NDArray[np.float64]

SCRIPT = Upload("rtde_control", "def rtde_control():\n # int register offset\n0\nend")
SERVO_J, SET_TCP, SPEED_J = 11, 29, 9
TOOL_M = 0.155


class Robot:
    """A controller with its program, driven by its registers."""

    def __init__(self, profile: Profile, model: str = "ur5") -> None:
        # Immediate starts: what is specified here does not depend on them.
        self.profile = replace(profile, program_start_s=0.0, script_late_s=0.0, factory_seed=0)
        self.arm = KinematicArm(Kinematics(LINKS[model]), self.profile)
        self.controller = Controller(MODELS[model], self.arm, Delays().scaled(0.0), self.profile)
        self.arm.flange_from_tcp = self.controller.target.flange_from_tcp
        self.start()

    def start(self) -> None:
        self.controller.upload(SCRIPT)
        self.controller.cycle()
        assert self.controller.runtime_state is RuntimeState.PLAYING

    def set_tool(self) -> None:
        tool = np.eye(4)
        tool[2, 3] = TOOL_M
        self.controller.target.flange_from_tcp = tool

    def write(self, command: int, values: list[float]) -> None:
        registers = self.controller.registers
        registers.input_ints[0] = command
        registers.input_doubles[: len(values)] = values

    def servo(self, joints_rad: FloatArray, lookahead_s: float = 0.05) -> None:
        """One cycle with a servo target."""
        self.write(SERVO_J, [*joints_rad.tolist(), 0.0, 0.0, 0.008, lookahead_s, 300.0])
        self.controller.cycle()

    def servo_down(self, to_z_m: float, speed_m_s: float) -> None:
        """Stream poses straight down until the TCP is commanded to a height, or the arm stops."""
        kinematics, target = self.arm.kinematics, self.controller.target
        pose = kinematics.base_from_tcp(self.arm.joints_rad, target.flange_from_tcp)
        joints = self.arm.joints_rad
        while pose[2, 3] > to_z_m and self.mode is SafetyMode.NORMAL:
            pose[2, 3] = max(pose[2, 3] - speed_m_s * self.controller.period_s, to_z_m)
            joints = kinematics.solve(pose, target.flange_from_tcp, joints)
            self.servo(joints)

    def ramp(self, speed_rad_s: float, duration_s: float) -> float:
        """Stream a constant speed of the base joint; the measured speed in the second half."""
        start = self.arm.joints_rad.copy()
        cycles = round(duration_s / self.controller.period_s)
        angles = []
        for index in range(cycles):
            joints = start.copy()
            joints[0] += speed_rad_s * index * self.controller.period_s
            self.servo(joints)
            angles.append(self.arm.joints_rad[0])
        half = cycles // 2
        return float((angles[-1] - angles[half]) / ((cycles - half - 1) * self.controller.period_s))

    @property
    def mode(self) -> SafetyMode:
        return self.controller.safety.safety_mode

    @property
    def tcp_m(self) -> FloatArray:
        tool = self.controller.target.flange_from_tcp
        return self.arm.kinematics.base_from_tcp(self.arm.joints_rad, tool)[:3, 3]


# Slider and reduced mode -----------------------------------------------------------------------


@pytest.mark.parametrize("slider", [1.0, 0.5, 0.2])
def test_a_stream_that_goes_as_slowly_as_the_slider_says_is_followed_at_its_own_speed(
    slider: float,
) -> None:
    """As UR's scaled trajectory controller relies on; the old emulator scaled it once more."""
    robot = Robot(replace(STRICT, speed_slider=slider))
    assert robot.ramp(0.2 * slider, 4.0) == pytest.approx(0.2 * slider, rel=0.02)
    outputs = output_variables(robot.controller)
    assert outputs["target_speed_fraction"] == slider
    assert outputs["speed_scaling"] == 1.0


@pytest.mark.parametrize("slider", [0.5, 0.2])
def test_with_the_slider_down_the_arm_makes_that_share_of_the_way_in_each_cycle(
    slider: float,
) -> None:
    full, slowed = Robot(STRICT), Robot(replace(STRICT, speed_slider=slider))
    goal = full.arm.joints_rad + 0.1 * np.eye(6)[0]
    for robot in (full, slowed):
        robot.servo(goal)
    first, second = (robot.controller.target.speeds_rad_s[0] for robot in (full, slowed))
    assert second == pytest.approx(slider * first, rel=0.08)


def test_with_the_slider_down_no_joint_is_faster_than_that_share_of_its_limit() -> None:
    robot = Robot(replace(STRICT, speed_slider=0.1))
    goal = robot.arm.joints_rad + 0.59 * np.eye(6)[0]
    robot.servo(goal, lookahead_s=0.03)
    assert robot.controller.target.speeds_rad_s[0] == pytest.approx(0.1 * math.pi, rel=1e-6)


def test_a_stream_that_ignores_the_slider_runs_ahead_of_the_arm() -> None:
    """Behind a lag of 50 ms, five times as long: 0.25 s of 0.2 rad/s."""
    robot = Robot(replace(STRICT, speed_slider=0.2))
    robot.ramp(0.2, 3.0)
    behind = robot.controller.registers.input_doubles[0] - robot.controller.target.joints_rad[0]
    assert behind == pytest.approx(0.05, rel=0.05)


def test_the_lenient_profile_lets_streams_pass_at_full_speed() -> None:
    assert Robot(replace(LENIENT, speed_slider=0.2)).ramp(0.2, 1.0) == pytest.approx(0.2, rel=0.02)


def test_a_slowed_stream_creeps_on_to_its_target_when_the_stream_ends() -> None:
    robot = Robot(replace(STRICT, speed_slider=0.2))
    robot.ramp(0.2, 1.0)
    last = robot.controller.registers.input_doubles[0]
    behind = last - robot.arm.joints_rad[0]
    assert behind > 0.04
    for _ in range(1500):
        robot.controller.cycle()
    assert robot.arm.joints_rad[0] == pytest.approx(last, abs=1e-3)


def test_reduced_mode_slows_the_stream_and_shows_in_the_outputs() -> None:
    robot = Robot(STRICT)
    robot.controller.safety.set_reduced(True)
    robot.ramp(0.2, 3.0)
    behind = robot.controller.registers.input_doubles[0] - robot.controller.target.joints_rad[0]
    assert behind == pytest.approx(0.2 * 0.05 / 0.3, rel=0.05)
    outputs = output_variables(robot.controller)
    assert outputs["speed_scaling"] == pytest.approx(0.3)
    assert outputs["safety_mode"] == 2
    assert outputs["safety_status_bits"] == 0x002


def test_a_speed_stream_is_slowed_too() -> None:
    robot = Robot(replace(STRICT, speed_slider=0.5))
    robot.write(SPEED_J, [0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.1])
    for _ in range(125):
        robot.controller.cycle()
    assert robot.arm.speeds_rad_s[0] == pytest.approx(0.1, rel=0.01)


# Contact and force -----------------------------------------------------------------------------


def test_pushing_on_the_table_is_felt_and_then_a_protective_stop_within_millimetres() -> None:
    robot = Robot(STRICT)
    robot.set_tool()
    robot.servo_down(0.0, 0.25)
    robot.servo_down(-0.05, 0.05)

    assert robot.mode is SafetyMode.PROTECTIVE_STOP
    assert robot.controller.runtime_state is RuntimeState.PAUSED
    assert robot.tcp_m[2] == pytest.approx(0.0, abs=5e-4)
    assert "collision" in robot.controller.events[-1]


def test_the_lenient_arm_passes_through_the_table() -> None:
    robot = Robot(LENIENT)
    robot.set_tool()
    robot.servo_down(-0.05, 0.25)
    assert robot.mode is SafetyMode.NORMAL
    for _ in range(100):
        robot.controller.cycle()
    assert robot.tcp_m[2] == pytest.approx(-0.05, abs=1e-3)


def test_the_force_of_a_contact_follows_from_stiffness_and_depth() -> None:
    profile = replace(STRICT, force_bias_n=(0.0, 0.0, 0.0), force_noise_n=0.0, force_drift_n=0.0)
    robot = Robot(profile)
    robot.set_tool()
    robot.servo_down(0.02, 0.25)
    x, y, _ = robot.tcp_m
    robot.arm.obstacles = (Obstacle((x, y, 0.0), (0.2, 0.2, 0.04), stiffness_n_m=1e9),)
    robot.servo_down(0.018, 0.02)
    for _ in range(200):
        robot.controller.cycle()

    # 2 mm into something immovable, at 25 N per mm.
    force_n = output_variables(robot.controller)["actual_TCP_force"]
    assert force_n[2] == pytest.approx(50.0, rel=0.02)
    assert abs(force_n[0]) < 1.0
    assert robot.tcp_m[2] == pytest.approx(0.02, abs=1e-5)
    assert robot.mode is SafetyMode.NORMAL


def test_a_free_arm_reads_a_biased_noisy_force() -> None:
    robot = Robot(STRICT)
    samples = []
    for _ in range(500):
        robot.controller.cycle()
        samples.append(output_variables(robot.controller)["actual_TCP_force"])
    spread = np.std(samples, axis=0)
    assert spread[:3] == pytest.approx([3.0] * 3, rel=0.15)
    drift = 4.0
    assert np.abs(np.mean(samples, axis=0)[:3] - (6.0, -4.0, 9.0)).max() < drift + 0.5


def test_a_stopped_program_resumes_towards_the_old_pose_and_hits_again() -> None:
    robot = Robot(STRICT)
    robot.set_tool()
    robot.servo_down(-0.05, 0.1)
    assert robot.controller.runtime_state is RuntimeState.PAUSED
    robot.controller.safety.unlock(time.monotonic() + 60.0)
    stops = len(robot.controller.events)

    assert robot.controller.resume_program()
    for _ in range(100):
        robot.controller.cycle()

    assert robot.mode is SafetyMode.PROTECTIVE_STOP
    assert len(robot.controller.events) > stops


def test_a_program_ended_by_the_dashboard_cannot_be_resumed() -> None:
    robot = Robot(STRICT)
    robot.controller.trigger_protective_stop("test")
    robot.controller.stop_program()
    robot.controller.safety.unlock(time.monotonic() + 60.0)
    assert not robot.controller.resume_program()


# Installation and links ------------------------------------------------------------------------


def test_a_safety_plane_is_a_violation_that_only_a_restart_of_safety_clears() -> None:
    robot = Robot(replace(STRICT, safety_planes=((0.0, 0.0, 1.0, -0.2),)))
    robot.set_tool()
    robot.servo_down(0.1, 0.1)

    assert robot.mode is SafetyMode.VIOLATION
    assert robot.controller.runtime_state is RuntimeState.STOPPED
    assert output_variables(robot.controller)["safety_status_bits"] == 0x500
    robot.controller.safety.unlock(time.monotonic() + 60.0)
    assert robot.mode is SafetyMode.VIOLATION
    robot.controller.safety.restart()
    assert robot.mode is SafetyMode.NORMAL
    assert robot.controller.safety.robot_mode is RobotMode.POWER_OFF


def test_a_joint_beyond_its_limit_is_a_protective_stop_and_the_way_back_is_free() -> None:
    robot = Robot(replace(STRICT, joint_limits_rad=(1.0,) + (2 * math.pi,) * 5))
    robot.ramp(0.8, 1.5)
    assert robot.mode is SafetyMode.PROTECTIVE_STOP
    assert "joint 0" in robot.controller.events[-1]
    for _ in range(50):
        robot.controller.cycle()
    robot.controller.safety.unlock(time.monotonic() + 60.0)
    robot.controller.stop_program()
    robot.controller.registers.input_ints[0] = 0
    robot.start()
    robot.ramp(-0.4, 0.5)
    assert robot.mode is SafetyMode.NORMAL


def test_an_elbow_that_is_driven_into_the_table_is_a_protective_stop() -> None:
    robot = Robot(STRICT)
    joints = np.array(HOME_RAD)
    for _ in range(600):
        joints[1] -= 0.003
        joints[2] += 0.002
        robot.servo(joints)
        if robot.mode is not SafetyMode.NORMAL:
            break
    assert robot.mode is SafetyMode.PROTECTIVE_STOP
    assert "meet" in robot.controller.events[-1]


@pytest.mark.parametrize("height_m", [0.01, 0.1, 0.3])
def test_the_working_area_in_the_home_branch_is_free_of_collisions(height_m: float) -> None:
    robot = Robot(STRICT)
    robot.set_tool()
    robot.servo_down(height_m, 0.2)
    robot.ramp(0.5, 2.0)
    assert robot.mode is SafetyMode.NORMAL


# Program ---------------------------------------------------------------------------------------


def test_a_script_thread_begins_late() -> None:
    robot = Robot(STRICT)
    late = replace(robot.profile, script_late_s=0.04)
    robot.controller.profile = late
    robot.controller.upload(SCRIPT)
    robot.controller.cycle()
    ready = [int(robot.controller.registers.output_ints[0])]
    for _ in range(10):
        robot.controller.cycle()
        ready.append(int(robot.controller.registers.output_ints[0]))
    assert ready[0] == 0
    assert 3 <= ready.index(1) <= 6


def test_jogging_ends_the_program_and_moves_the_arm() -> None:
    robot = Robot(STRICT)
    before = robot.tcp_m
    assert robot.controller.jog(np.array([0.0, 0.0, 0.02]), 0.05)
    assert robot.controller.runtime_state is RuntimeState.STOPPED
    for _ in range(200):
        robot.controller.cycle()
    assert robot.tcp_m - before == pytest.approx([0.0, 0.0, 0.02], abs=1e-4)


def test_an_e_series_in_remote_control_cannot_be_jogged_and_in_local_takes_no_program() -> None:
    robot = Robot(STRICT, model="ur5e")
    assert not robot.controller.jog(np.array([0.0, 0.0, 0.02]), 0.05)

    robot.controller.set_remote_control(False)

    assert robot.controller.runtime_state is RuntimeState.STOPPED
    assert robot.controller.jog(np.array([0.0, 0.0, 0.02]), 0.05)
    robot.controller.upload(SCRIPT)
    robot.controller.cycle()
    assert robot.controller.runtime_state is RuntimeState.STOPPED
    assert "local control" in robot.controller.events[-1]
