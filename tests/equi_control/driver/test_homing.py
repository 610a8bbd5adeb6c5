"""Specification of the way home: let go first, try again after contact, and give up in the end."""

from __future__ import annotations

import numpy as np

from equi_control.driver.config import DriverConfig
from equi_control.driver.homing import WayHome
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig

CONFIG = DriverConfig(
    ServoConfig(LinkConfig(host="127.0.0.9")), home_position_m=(0.5, 0.0, 0.2), home_yaw_rad=0.0
)
ARRIVED = {"blocked": False, "message": ""}
STOPPED_BY_CONTACT = {"blocked": True, "message": "contact: 13 mm behind the target, 0 N"}


class ObedientArm:
    """Notes where it is sent, and is there at once."""

    def __init__(self) -> None:
        self.sent: list[list[float]] = []

    def aim(self, target) -> None:
        self.sent.append([float(value) for value in np.asarray(target)])

    def arrived(self, servo_state) -> bool:
        return True

    def resting(self, servo_state) -> bool:
        return True


def a_way_home():
    arm = ObedientArm()
    way = WayHome(arm, CONFIG)
    way.start((0.4, 0.1, 0.03), 0.7)
    return arm, way


def test_the_arm_first_lets_go_where_it_is_then_goes_up_over_and_home():
    arm, way = a_way_home()
    over = False
    while not over:
        over = way.advance(ARRIVED)
    assert arm.sent == [
        [0.4, 0.1, 0.03, 0.7],
        [0.4, 0.1, 0.2, 0.7],
        [0.5, 0.0, 0.2, 0.0],
        [0.5, 0.0, 0.2, 0.0],
    ]
    assert way.blocked == ""
    assert not way.is_under_way


def test_a_waypoint_that_contact_kept_the_arm_from_is_tried_again():
    arm, way = a_way_home()
    way.advance(ARRIVED)
    assert not way.advance(STOPPED_BY_CONTACT)
    assert arm.sent[-1] == arm.sent[-2] == [0.4, 0.1, 0.2, 0.7]
    assert way.is_under_way


def test_the_third_contact_ends_the_way_and_says_so():
    _, way = a_way_home()
    assert not way.advance(STOPPED_BY_CONTACT)
    assert not way.advance(STOPPED_BY_CONTACT)
    assert way.advance(STOPPED_BY_CONTACT)
    assert way.blocked == "contact: 13 mm behind the target, 0 N"
    assert not way.is_under_way
    # and the next way begins afresh
    way.start((0.4, 0.1, 0.03), 0.7)
    assert way.blocked == ""
    assert not way.advance(STOPPED_BY_CONTACT)
