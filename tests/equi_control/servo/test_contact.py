# SPDX-License-Identifier: MIT
"""Contact by what a step changes: a biased, noisy estimate is no contact, a growing force is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from equi_control.rtde.config import LinkConfig
from equi_control.rtde.robot_reading import Reading
from equi_control.servo.config import ServoConfig
from equi_control.servo.contact import ContactMonitor
from ur_emulator.profile import STRICT

PERIOD_S = 0.008
CONFIG = ServoConfig(LinkConfig("127.0.0.9"))


def reading(force_n: np.ndarray, lag_m: float = 0.0) -> Reading:
    target = np.eye(4)
    target[0, 3] = lag_m
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


def started(bias_n: np.ndarray, rng: np.random.Generator) -> ContactMonitor:
    monitor = ContactMonitor(CONFIG, PERIOD_S)
    for _ in range(30):
        monitor.see(reading(bias_n + rng.normal(0.0, 3.0, 3)))
    monitor.begin_step()
    return monitor


@pytest.mark.parametrize("bias_n", [(0.0, 0.0, 0.0), (60.0, -40.0, 90.0)])
def test_a_biased_and_noisy_estimate_is_no_contact(bias_n: tuple[float, ...]) -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        monitor = started(np.array(bias_n), rng)
        for _ in range(125):
            now = reading(np.array(bias_n) + rng.normal(0.0, 3.0, 3))
            monitor.see(now)
            assert monitor.contact(now) == ""


def test_a_stiff_contact_is_noticed_before_the_tool_is_pressed_by_three_millimetres() -> None:
    rng = np.random.default_rng(2)
    bias = np.array([6.0, -4.0, 9.0])
    per_cycle_n = CONFIG.near_surface_speed_m_s * PERIOD_S * 25_000.0
    for _ in range(50):
        monitor = started(bias, rng)
        pressed_n = 0.0
        while True:
            pressed_n += per_cycle_n
            assert pressed_n < 75.0, "not noticed"
            now = reading(bias + np.array([0.0, 0.0, pressed_n]) + rng.normal(0.0, 3.0, 3))
            monitor.see(now)
            if monitor.contact(now):
                break


@pytest.mark.parametrize("cell", ["lab", "sim"])
def test_a_driver_that_is_not_scheduled_at_contact_is_no_protective_stop(
    cell: str, repository_root: Path
) -> None:
    # Worst case: the process stands still just when it would have noticed, until the controller's
    # watchdog ends the program. Meanwhile the arm goes on to what was streamed ahead of it.
    file = yaml.safe_load((repository_root / f"launch/cells/{cell}.yaml").read_text())
    settings = file["rtde_driver"]["ros__parameters"]
    lookahead_s = settings.get("link.lookahead_s", CONFIG.link.lookahead_s)
    asleep_s = 1.0 / settings.get("link.watchdog_hz", CONFIG.link.watchdog_hz)
    speed_m_s = settings.get("servo.near_surface_speed_m_s", CONFIG.near_surface_speed_m_s)
    rng = np.random.default_rng(6)
    bias = np.array([6.0, -4.0, 9.0])
    deepest_m = 0.0
    for _ in range(50):
        monitor = started(bias, rng)
        pressed_m, estimate_n = 0.0, 0.0
        while True:
            pressed_m += speed_m_s * PERIOD_S
            force_n = STRICT.arm_stiffness_n_m * pressed_m
            estimate_n += (force_n - estimate_n) * -np.expm1(-PERIOD_S / STRICT.force_filter_s)
            now = reading(bias + np.array([0.0, 0.0, estimate_n]) + rng.normal(0.0, 3.0, 3))
            monitor.see(now)
            if monitor.contact(now):
                break
        deepest_m = max(deepest_m, pressed_m)
    ahead_m = speed_m_s * (lookahead_s * STRICT.servo_lag_factor + STRICT.joint_lag_s)
    deepest_m += ahead_m * -np.expm1(-asleep_s / lookahead_s)

    assert deepest_m < 0.9 * STRICT.collision_lag_m
    assert STRICT.arm_stiffness_n_m * deepest_m < 0.9 * STRICT.force_limit_n


def test_letting_go_of_what_was_pressed_is_no_contact() -> None:
    rng = np.random.default_rng(3)
    bias = np.array([6.0, -4.0, 9.0])
    monitor = started(bias, rng)
    for force_n in [60.0] * 20:
        monitor.see(reading(bias + np.array([0.0, 0.0, force_n])))
    monitor.begin_step()
    for force_n in [*np.linspace(60.0, 0.0, 8), *[0.0] * 30]:
        now = reading(bias + np.array([0.0, 0.0, force_n]) + rng.normal(0.0, 3.0, 3))
        monitor.see(now)
        assert monitor.contact(now) == ""


def test_sliding_along_what_was_pressed_is_no_contact() -> None:
    """Or an arm that leans on something rigid could never leave it: every step would be blocked."""
    rng = np.random.default_rng(6)
    bias = np.array([6.0, -4.0, 9.0])
    monitor = started(bias, rng)
    for _ in range(30):
        monitor.see(reading(bias + np.array([0.0, 0.0, 60.0]) + rng.normal(0.0, 3.0, 3)))
    monitor.begin_step()
    for pressed_n in (*np.linspace(60.0, 25.0, 10), *np.linspace(25.0, 60.0, 6), *[60.0] * 10):
        now = reading(bias + np.array([0.0, 0.0, pressed_n]) + rng.normal(0.0, 3.0, 3))
        monitor.see(now)
        assert monitor.contact(now) == ""


def test_an_arm_that_has_let_go_notices_the_next_contact_as_finely_as_any() -> None:
    rng = np.random.default_rng(5)
    bias = np.array([6.0, -4.0, 9.0])
    per_cycle_n = CONFIG.near_surface_speed_m_s * PERIOD_S * 25_000.0
    for _ in range(50):
        monitor = started(bias, rng)
        for _ in range(30):  # the step before ends pressed, and stays so after its back-off
            monitor.see(reading(bias + np.array([0.0, 0.0, 60.0]) + rng.normal(0.0, 3.0, 3)))
        monitor.begin_step()
        falling = np.linspace(60.0, 0.0, 25)
        rising = np.arange(1, 10) * per_cycle_n
        assert rising[-1] == pytest.approx(72.0), "less than three millimetres of a stiff arm"
        noticed_at_n = None
        for pressed_n in (*falling, *np.zeros(10), *rising):
            now = reading(bias + np.array([0.0, 0.0, pressed_n]) + rng.normal(0.0, 3.0, 3))
            monitor.see(now)
            if monitor.contact(now):
                noticed_at_n = pressed_n
                break
        assert noticed_at_n in rising, noticed_at_n


def test_an_arm_held_back_from_its_target_is_in_contact_without_any_force() -> None:
    monitor = started(np.zeros(3), np.random.default_rng(4))
    now = reading(np.zeros(3), lag_m=0.009)
    monitor.see(now)

    assert monitor.contact(now).startswith("9.0 mm behind")


def test_a_force_that_is_no_number_counts_as_contact() -> None:
    monitor = started(np.zeros(3), np.random.default_rng(5))
    now = reading(np.array([np.nan, 0.0, 0.0]))
    monitor.see(now)

    assert monitor.contact(now)


def noticed_while_pressed_up_to(force_n: float, cycles: int) -> bool:
    """Whether a force that grows evenly within some cycles, and then stays, is contact."""
    monitor = started(np.zeros(3), np.random.default_rng(6))
    for share in [*np.linspace(0.0, 1.0, cycles), *[1.0] * 5]:
        now = reading(np.array([0.0, 0.0, share * force_n]))
        monitor.see(now)
        if monitor.contact(now):
            return True
    return False


def test_a_force_that_grows_fast_is_contact_before_one_that_drifts() -> None:
    """Two thirds of the limit within 32 ms, as a stiff contact; or within a second, as a drift."""
    below_n = 0.85 * CONFIG.contact_force_n
    assert noticed_while_pressed_up_to(below_n, cycles=4)
    assert not noticed_while_pressed_up_to(below_n, cycles=125)
    assert noticed_while_pressed_up_to(1.3 * CONFIG.contact_force_n, cycles=125)
