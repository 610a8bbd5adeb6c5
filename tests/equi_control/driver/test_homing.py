# SPDX-License-Identifier: MIT
"""Specification of homing: let go first, try again after contact, and give up in the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from equi_control.driver.config import DriverConfig
from equi_control.driver.homing import Homing
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.servo.shared_state import ServoState
from equi_core.cell_geometry import CellGeometry
from equi_core.geometry import top_down_pose
from equi_core.motion.ur5_kinematics import HOME_RAD, inverse_near

CONFIG = DriverConfig(
    ServoConfig(LinkConfig(host="127.0.0.9")), home_position_m=(0.5, 0.0, 0.2), home_yaw_rad=0.0
)
ARRIVED = ServoState()
NOW_S = 100.0
STOPPED_BY_CONTACT = ServoState(blocked=True, message="contact: 13 mm behind the target, 0 N")


class ObedientArm:
    """Notes where it is sent, and is there at once."""

    def __init__(self) -> None:
        self.sent: list[list[float]] = []
        self.stuck = False

    def set_target(self, target) -> None:
        self.sent.append([float(value) for value in np.asarray(target)])

    def arrived(self, servo_state) -> bool:
        return not self.stuck

    def resting(self, servo_state) -> bool:
        return True

    def is_at_target(self, servo_state, target, tolerance) -> bool:
        return True


def joints_at(position_m, yaw_rad):
    pose = top_down_pose(position_m, yaw_rad)
    return inverse_near(pose @ np.linalg.inv(CellGeometry().flange_from_tcp), HOME_RAD)


def started_homing():
    arm: Any = ObedientArm()
    homing = Homing(arm, CONFIG)
    homing.start((0.4, 0.1, 0.03), 0.7, joints_at((0.4, 0.1, 0.03), 0.7), NOW_S)
    return arm, homing


def test_the_arm_first_lets_go_where_it_is_then_goes_up_over_and_home():
    arm, homing = started_homing()
    over = False
    while not over:
        over = homing.advance(ARRIVED, NOW_S)
    assert arm.sent == [
        [0.4, 0.1, 0.03, 0.7],
        [0.4, 0.1, 0.2, 0.7],
        [0.5, 0.0, 0.2, 0.0],
        [0.5, 0.0, 0.2, 0.0],
    ]
    assert homing.blocked == ""
    assert not homing.active


def test_a_waypoint_that_contact_kept_the_arm_from_is_tried_again():
    arm, homing = started_homing()
    homing.advance(ARRIVED, NOW_S)
    assert not homing.advance(STOPPED_BY_CONTACT, NOW_S)
    assert arm.sent[-1] == arm.sent[-2] == [0.4, 0.1, 0.2, 0.7]
    assert homing.active


def test_the_third_contact_ends_the_way_and_says_so():
    _, homing = started_homing()
    assert not homing.advance(STOPPED_BY_CONTACT, NOW_S)
    assert not homing.advance(STOPPED_BY_CONTACT, NOW_S)
    assert homing.advance(STOPPED_BY_CONTACT, NOW_S)
    assert homing.blocked == "contact: 13 mm behind the target, 0 N"
    assert not homing.active
    # and the next way begins afresh
    homing.start((0.4, 0.1, 0.03), 0.7, joints_at((0.4, 0.1, 0.03), 0.7), NOW_S)
    assert homing.blocked == ""
    assert not homing.advance(STOPPED_BY_CONTACT, NOW_S)


def test_a_waypoint_that_is_not_reached_in_time_ends_the_way_and_says_where_the_arm_is():
    """On the old code the way home never ended."""
    arm, homing = started_homing()
    homing.advance(ARRIVED, NOW_S)
    arm.stuck = True
    here = ServoState(task_from_tcp=top_down_pose((0.4, 0.1, 0.05), 0.7))
    limit_s = CONFIG.step_timeout_s
    assert not homing.advance(here, NOW_S + limit_s - 0.1)
    assert homing.advance(here, NOW_S + limit_s + 0.1)
    assert homing.blocked == (
        "150.0 mm from the target after 30 s; slider and speed scaling at 100%"
    )
    assert not homing.active


def test_each_waypoint_has_its_own_time_and_a_slow_slider_stretches_it():
    arm, homing = started_homing()
    homing.advance(ARRIVED, NOW_S + 29.0)
    arm.stuck = True
    slow = ServoState(speed_slider=0.5)
    assert not homing.advance(ARRIVED, NOW_S + 58.0)
    assert not homing.advance(slow, NOW_S + 88.0)
    assert homing.advance(slow, NOW_S + 90.0)
