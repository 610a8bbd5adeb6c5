# SPDX-License-Identifier: MIT
"""Where the arm stands for a pose of the gripper."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equi_core.geometry import yaw_of
from equi_core.motion.ur5_kinematics import HOME_RAD
from equi_rl.sim.arm import joints_for_pose, tcp_pose_of


@pytest.mark.parametrize("yaw_rad", np.linspace(-math.pi / 2, math.pi / 2, 21).tolist())
def test_the_arm_never_reaches_backwards_whatever_the_yaw(yaw_rad: float) -> None:
    for x in (0.35, 0.5, 0.65):
        for y in (-0.19, 0.0, 0.19):
            joints = joints_for_pose((x, y, 0.25), yaw_rad)
            pose = tcp_pose_of(joints)
            assert pose[:3, 3] == pytest.approx((x, y, 0.25), abs=1e-6)
            # The gripper is the same after half a turn.
            assert math.sin(float(yaw_of(pose)) - yaw_rad) == pytest.approx(0.0, abs=1e-6)
            assert float(np.abs(joints - np.array(HOME_RAD))[:3].max()) < 1.2
            assert abs(float(joints[5])) <= math.pi / 2 + 1e-6
