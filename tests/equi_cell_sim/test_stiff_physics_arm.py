# SPDX-License-Identifier: MIT
"""The physics arm under the strict profile: stiff, with a force that tells contact from motion."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from equi_cell_sim.physics_arm import PhysicsArm
from ur_emulator.mechanics.kinematics import HOME_RAD
from ur_emulator.profile import LENIENT, STRICT, Profile

PERIOD_S = 0.008
TOOL = np.eye(4)
TOOL[2, 3] = 0.155
REST = np.zeros(6)


def made(profile: Profile) -> PhysicsArm:
    arm = PhysicsArm(125, None, profile)
    arm.flange_from_tcp = TOOL
    return arm


@pytest.fixture(scope="module")
def stiff() -> Iterator[PhysicsArm]:
    arm = made(STRICT)
    yield arm
    arm.close()


def force_n(arm: PhysicsArm) -> float:
    return float(np.linalg.norm(arm.contact_wrench[:3]))


def test_free_motion_at_the_policys_top_speed_reads_almost_no_force(stiff: PhysicsArm) -> None:
    largest_n, fastest_m_s = 0.0, 0.0
    home = np.array(HOME_RAD)
    stiff.place(home)
    for cycle in range(250):
        # Eases in: a start at full speed is no motion that a controller makes.
        size = 0.1 * min(1.0, cycle / 50)
        swing = size * math.sin(math.pi * cycle * PERIOD_S)
        stiff.follow(home + swing * np.array([1.0, 0.5, 0.5, 0.5, 0.5, 1.0]), REST, PERIOD_S)
        largest_n = max(largest_n, force_n(stiff))
        speed = stiff.kinematics.jacobian(stiff.joints_rad, TOOL)[:3] @ stiff.speeds_rad_s
        fastest_m_s = max(fastest_m_s, float(np.linalg.norm(speed)))
    assert fastest_m_s > 0.15
    assert largest_n < 10.0


def pushed_below_contact(arm: PhysicsArm, depth_m: float) -> float:
    """Lower the tool slowly until it touches the table, then by `depth_m`; the force there [N]."""
    arm.place(np.array(HOME_RAD))
    joints = arm.joints_rad.copy()
    pose = arm.kinematics.base_from_tcp(joints, TOOL)
    touched_m: float | None = None
    while touched_m is None or pose[2, 3] > touched_m - depth_m:
        pose[2, 3] -= 0.0004 if pose[2, 3] < 0.03 else 0.002
        joints = arm.kinematics.solve(pose, TOOL, joints)
        arm.follow(joints, REST, PERIOD_S)
        if touched_m is None and pose[2, 3] < 0.03 and force_n(arm) > 5.0:
            touched_m = float(pose[2, 3])
        assert pose[2, 3] > -0.05
    for _ in range(30):
        arm.follow(joints, REST, PERIOD_S)
    return force_n(arm)


def test_the_table_is_felt_at_the_stiffness_of_the_profile(stiff: PhysicsArm) -> None:
    # 25 N per millimetre, whatever the depth at which the first touch is noticed.
    deeper_n = pushed_below_contact(stiff, 0.004) - pushed_below_contact(stiff, 0.002)
    assert deeper_n == pytest.approx(50.0, rel=0.2)


def test_a_block_that_is_pushed_against_another_does_not_sink_into_it(stiff: PhysicsArm) -> None:
    block_m, gap_m, overtravel_m = 0.05, 0.02, 0.004
    stiff.place(np.array(HOME_RAD))
    joints = stiff.joints_rad.copy()
    pose = stiff.kinematics.base_from_tcp(joints, TOOL)
    # The controller's base is turned by half a turn against the scene's.
    x_m, y_m = -pose[0, 3], -pose[1, 3]
    pushed = {"kind": "block", "position_m": [x_m + 0.045, y_m, 0.025], "yaw_rad": 0.0}
    fixed = {**pushed, "position_m": [x_m + 0.045 + block_m + gap_m, y_m, 0.025], "movable": False}
    stiff.reset_scene({"objects": [{**pushed, "movable": True}, fixed]})
    stiff.gripper.command(0.0, 0.1, 40.0)

    def gap_now_m() -> float:
        near, far = (item["position_m"][0] for item in stiff.scene()["objects"])
        return float(far - near) - block_m

    while pose[2, 3] > 0.03:
        pose[2, 3] -= 0.001
        joints = stiff.kinematics.solve(pose, TOOL, joints)
        stiff.follow(joints, REST, PERIOD_S)
    deepest_m, touched_m = 0.0, math.inf
    while -pose[0, 3] < touched_m + overtravel_m:
        pose[0, 3] -= 0.04 * PERIOD_S
        joints = stiff.kinematics.solve(pose, TOOL, joints)
        stiff.follow(joints, REST, PERIOD_S)
        deepest_m = max(deepest_m, -gap_now_m())
        if math.isinf(touched_m) and gap_now_m() < 1e-4:
            touched_m = -pose[0, 3]
        assert -pose[0, 3] < x_m + 0.15

    assert deepest_m < 1e-3
    assert force_n(stiff) > 25.0


def test_the_lenient_arm_feels_nothing() -> None:
    arm = made(LENIENT)
    for _ in range(20):
        arm.follow(np.array(HOME_RAD), REST, PERIOD_S)
    assert not arm.contact_wrench.any()
    arm.close()
