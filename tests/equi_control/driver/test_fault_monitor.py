# SPDX-License-Identifier: MIT
"""What the driver takes for a fault of the arm: too fast for too long, or outside the box."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from equi_control.driver.config import DriverConfig
from equi_control.driver.fault_monitor import FaultMonitor
from equi_control.driver.state import FaultCode
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.servo.shared_state import Phase, ServoState

GRIPPER = SimpleNamespace(connected=True, jammed=False, fault=0, reason="", opening=1.0)
SERVO = SimpleNamespace(alive=True, silence_s=lambda: 0.0)


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only when told to."""
    now = SimpleNamespace(s=100.0)
    monkeypatch.setattr(time, "monotonic", lambda: now.s)
    return now


@pytest.fixture
def monitor(clock):
    return FaultMonitor(DriverConfig(servo=ServoConfig(link=LinkConfig(host="127.0.0.2"))))


def check(monitor, speed_m_s=0.0, position_m=(0.5, 0.0, 0.1), phase=Phase.STREAMING):
    pose = np.eye(4)
    pose[:3, 3] = position_m
    twist = np.array([0.0, speed_m_s, 0.0, 0.0, 0.0, 0.0])
    state = ServoState(phase=phase, twist=twist, task_from_tcp=pose)
    return monitor.check(SERVO, state, GRIPPER, driving=True)


def test_a_speed_within_the_limit_is_no_fault(monitor, clock):
    for _ in range(100):
        clock.s += 0.008
        assert check(monitor, speed_m_s=0.49) is None


def test_fingers_that_spring_off_an_edge_for_two_cycles_are_no_fault(monitor, clock):
    for speed_m_s in (0.19, 0.78, 0.55, 0.26, 0.2):
        clock.s += 0.008
        assert check(monitor, speed_m_s) is None


def test_an_arm_that_stays_too_fast_is_a_fault_within_a_few_cycles(monitor, clock):
    assert check(monitor, speed_m_s=0.6) is None
    clock.s += 0.031
    fault = check(monitor, speed_m_s=0.6)
    assert fault.code is FaultCode.LIMIT_VIOLATED
    assert "0.60 m/s is above 0.5" in fault.reason


def test_the_time_of_an_earlier_spring_does_not_count(monitor, clock):
    check(monitor, speed_m_s=0.6)
    clock.s += 0.008
    check(monitor, speed_m_s=0.1)
    clock.s += 1.0
    assert check(monitor, speed_m_s=0.6) is None


def test_a_speed_that_is_not_a_number_is_too_fast(monitor, clock):
    check(monitor, speed_m_s=float("nan"))
    clock.s += 0.031
    assert check(monitor, speed_m_s=float("nan")).code is FaultCode.LIMIT_VIOLATED


def test_a_position_that_is_not_a_number_is_outside_the_box(monitor):
    fault = check(monitor, position_m=(float("nan"), 0.0, 0.1))
    assert fault.code is FaultCode.LIMIT_VIOLATED


def test_an_arm_outside_the_box_is_a_fault_at_once(monitor):
    assert check(monitor, position_m=(0.5, 0.3, 0.1)).code is FaultCode.LIMIT_VIOLATED
