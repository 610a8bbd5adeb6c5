# SPDX-License-Identifier: MIT
"""Law: what ends a step by contact on the robot ends it in training's stiff world as well.

One function decides for both; here the servo process and the training world are given the same
forces and must stop in the same cycle, with the same limits and the same speeds.
"""

from __future__ import annotations

import numpy as np
import pytest

from equi_control.rtde.config import LinkConfig
from equi_control.rtde.robot_reading import Reading
from equi_control.servo.config import ServoConfig
from equi_control.servo.contact import ContactMonitor
from equi_core.motion.contact_law import ContactLimits
from equi_rl.sim.stiff_arm import ContactSense, StiffArm
from equi_rl.training.presets import robot_run
from ur_emulator.profile import STRICT

PERIOD_S = 0.008
SERVO = ServoConfig(LinkConfig("127.0.0.9"))


def reading(force_n: np.ndarray, displacement_m: np.ndarray) -> Reading:
    target = np.eye(4)
    target[:3, 3] = -displacement_m
    return Reading(
        base_link_from_tcp=np.eye(4),
        base_link_from_target_tcp=target,
        twist=np.zeros(6),
        wrench=np.array([*force_n, 0.0, 0.0, 0.0]),
        joints_rad=np.zeros(6),
        joint_speeds_rad_s=np.zeros(6),
        controller_time_s=0.0,
        age_s=0.0,
        connected=True,
        program_state=2,
        robot_mode=7,
        safety_mode=1,
        safety_bits=1,
    )


def test_training_is_as_stiff_as_the_strict_robot_and_has_the_limits_of_the_driver() -> None:
    assert StiffArm().stiffness_n_m == STRICT.arm_stiffness_n_m
    assert StiffArm().limits == SERVO.contact_limits


def test_only_policies_that_are_deployed_are_trained_on_a_stiff_arm() -> None:
    assert robot_run("drawer_opening", "ship").stiff_arm
    assert not robot_run("drawer_opening", "paper").stiff_arm
    assert not robot_run("drawer_opening", "reward").stiff_arm


@pytest.mark.parametrize("seed", range(20))
def test_both_stop_in_the_same_cycle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arm = StiffArm()
    sense, monitor = ContactSense(arm, PERIOD_S), ContactMonitor(SERVO, PERIOD_S)
    rest_m = rng.uniform(-2e-4, 2e-4, 3)
    for _ in range(30):
        monitor.see(reading(arm.stiffness_n_m * rest_m, rest_m))
    monitor.begin_step()
    sense.begin_step(rest_m)
    direction = rng.normal(size=3)
    direction /= np.linalg.norm(direction)
    speed_m_s = rng.uniform(0.002, 0.25)
    stopped = []
    for cycle in range(400):
        displacement_m = rest_m + direction * max(0.0, (cycle - 20) * PERIOD_S * speed_m_s)
        now = reading(arm.stiffness_n_m * displacement_m, displacement_m)
        monitor.see(now)
        stopped = [sense.touches(displacement_m), monitor.contact(now) != ""]
        assert stopped[0] == stopped[1]
        if all(stopped):
            break

    assert stopped == [True, True]


@pytest.mark.parametrize(
    ("start_m", "target_m", "speed_m_s"),
    [
        ((0.5, 0.0, 0.10), (0.5, 0.0, 0.05), 0.04),
        ((0.5, 0.0, 0.10), (0.55, 0.0, 0.10), 0.04),
        ((0.5, 0.0, 0.16), (0.5, 0.0, 0.14), 0.04),
        ((0.5, 0.0, 0.10), (0.5, 0.0, 0.15), 0.08),
        ((0.5, 0.0, 0.20), (0.55, 0.0, 0.20), 0.08),
    ],
)
def test_steps_are_slow_where_contact_is_to_be_expected(
    start_m: tuple[float, ...], target_m: tuple[float, ...], speed_m_s: float
) -> None:
    assert ContactLimits().speed_of_step(start_m, target_m) == speed_m_s
