# SPDX-License-Identifier: MIT
"""The simulated UR5: joint motors, measured joints, measured TCP."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equi_core.geometry import top_down_pose
from equi_core.motion import ur5_kinematics
from equi_core.motion.ur5_kinematics import JOINT_NAMES, KinematicsError
from equi_rl.sim.bullet import BulletClient, pybullet
from equi_rl.sim.robot_model import TCP_FROM_TOOL0_M

FloatArray = NDArray[np.float64]

JOINTS = tuple(range(len(JOINT_NAMES)))

# The published torque limits are 150 and 28 Nm. The first three are halved here, which leaves about
# 80 N at the TCP beyond the arm's own weight: what a cautious controller allows before it stops.
MOTOR_TORQUE_NM = (75.0, 75.0, 75.0, 28.0, 28.0, 28.0)
POSITION_GAIN = 0.35
"""Share of a joint's error that its motor takes back in one physics step."""
_POSITION_GAINS = (POSITION_GAIN,) * 6
_VELOCITY_GAINS = (1.0,) * 6
_ZERO = (0.0,) * 6


class Arm:
    """Six position-controlled joints that follow streamed targets."""

    def __init__(self, client: BulletClient, body_id: int) -> None:
        self._body = body_id
        # Bound once: looking these up on the client costs as much as the call itself.
        self._set_motors = client.setJointMotorControlArray
        self._states = client.getJointStates
        self._reset_joint = client.resetJointState

    def teleport(self, joints_rad: Sequence[float]) -> None:
        """Put the arm at rest at a joint vector (6,)."""
        for joint, value in zip(JOINTS, joints_rad, strict=True):
            self._reset_joint(self._body, joint, float(value), 0.0)
        self.set_joint_targets(joints_rad)

    def set_joint_targets(
        self, joints_rad: Sequence[float], speeds_rad_s: Sequence[float] = _ZERO
    ) -> None:
        """Let the motors follow joint positions (6,) and speeds (6,) until the next call."""
        if len(joints_rad) != 6 or not np.all(np.isfinite(joints_rad)):
            raise KinematicsError(f"joint targets {list(joints_rad)} must be six finite angles")
        self.stream(joints_rad, speeds_rad_s)

    def stream(self, joints_rad: Sequence[float], speeds_rad_s: Sequence[float]) -> None:
        """`set_joint_targets` for targets that are known to be sound."""
        self._set_motors(
            self._body,
            JOINTS,
            pybullet.POSITION_CONTROL,
            targetPositions=joints_rad,
            targetVelocities=speeds_rad_s,
            forces=MOTOR_TORQUE_NM,
            positionGains=_POSITION_GAINS,
            velocityGains=_VELOCITY_GAINS,
        )

    def measured(self) -> tuple[FloatArray, FloatArray]:
        """Measured joint positions (6,) [rad] and speeds (6,) [rad/s]."""
        states = self._states(self._body, JOINTS)
        return (
            np.array([state[0] for state in states]),
            np.array([state[1] for state in states]),
        )

    def largest_error_rad(self, joints_rad: FloatArray) -> float:
        """Largest distance of a measured joint from a joint vector (6,), quickly."""
        states = self._states(self._body, JOINTS)
        return max(
            abs(state[0] - wanted)
            for state, wanted in zip(states, joints_rad.tolist(), strict=True)
        )

    def tcp_pose(self) -> FloatArray:
        """Measured base_link_from_tcp (4, 4)."""
        return tcp_pose_of(self.measured()[0])


def tcp_pose_of(joints_rad: FloatArray) -> FloatArray:
    """base_link_from_tcp (4, 4) of a joint vector (6,): tool0 moved out along its own z."""
    pose = ur5_kinematics.forward(joints_rad)
    pose[:3, 3] += TCP_FROM_TOOL0_M * pose[:3, 2]
    return pose


def joints_for_pose(position_m: Sequence[float], yaw_rad: float) -> FloatArray:
    """Joints (6,) of a downward TCP pose, elbow up, with the wrist as near its middle as it goes.

    The gripper is the same after half a turn, so of the two possible wrist angles the one nearer
    to zero is taken: an episode then starts with at least half a turn to spare on either side.
    """
    candidates = []
    for half_turns in (-1, 0, 1):
        pose = top_down_pose(position_m, yaw_rad + half_turns * math.pi)
        pose[:3, 3] -= TCP_FROM_TOOL0_M * pose[:3, 2]
        candidates.append(ur5_kinematics.inverse_near(pose, ur5_kinematics.HOME_RAD))
    # A wrist turned far makes another branch the nearest one: an arm that reaches backwards.
    home_rad = np.array(ur5_kinematics.HOME_RAD)
    bends_rad = [float(np.abs(joints - home_rad)[:3].max()) for joints in candidates]
    upright = [
        joints
        for joints, bend_rad in zip(candidates, bends_rad, strict=True)
        if bend_rad < min(bends_rad) + 0.1
    ]
    return min(upright, key=lambda joints: abs(float(joints[5])))
