# SPDX-License-Identifier: MIT
"""Law: two actions, two uses. Training and robot execute the same part of a requested action.

The environment steps a real world; the driver's step runner gets the same requests with the arm
commanded to where the environment's arm is. Both must execute the same step for the same reasons.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equi_control.driver.arm import Arm
from equi_control.driver.config import DriverConfig
from equi_control.driver.gripper import Gripper
from equi_control.driver.step_runner import StepRunner
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.servo.shared_state import Phase, ServoState
from equi_core.action import decode, encode
from equi_core.cell_geometry import CellGeometry
from equi_core.contract import ActionSpec
from equi_core.geometry import invert, top_down_pose
from equi_core.motion.safety import StepCommand
from equi_core.motion.safety_limits import SafetyLimits
from equi_core.motion.ur5_kinematics import HOME_RAD, inverse_near
from equi_core.step_limits import Reason
from equi_rl.envs import make_env
from equi_rl.envs.base import HiddenPropertyEnv

EPISODE = "one"
# The absolute range of yaw protects the robot's wrist 3; a simulated wrist has no cable to wind.
LIMITS = SafetyLimits(yaw_range_rad=1e6)


class StillServo:
    """Stands in for the servo process: an arm that rests where it is told to be."""

    phase = Phase.STREAMING

    def __init__(self) -> None:
        self._state = ServoState()
        self._joints_rad = np.asarray(HOME_RAD)

    def rest_at(self, position_m: tuple[float, float, float], yaw_rad: float) -> None:
        task_from_tcp = top_down_pose(position_m, yaw_rad)
        # From one step to the next an arm keeps its branch, however far its wrist has turned.
        self._joints_rad = inverse_near(
            task_from_tcp @ invert(CellGeometry().flange_from_tcp), self._joints_rad
        )
        self._state = ServoState(
            heartbeat_s=time.monotonic(),
            phase=Phase.STREAMING,
            joints_rad=self._joints_rad,
            task_from_tcp=task_from_tcp,
            commanded=np.array([*position_m, yaw_rad]),
        )

    def start(self) -> None:
        """Nothing to start."""

    def state(self) -> ServoState:
        return self._state

    def move_to(self, number: int, target: object) -> None:
        """The environment's arm moves instead."""


class DriverBeside:
    """The driver's own path for a step: step runner, safety filter, report."""

    def __init__(self) -> None:
        servo: Any = StillServo()
        config = DriverConfig(ServoConfig(LinkConfig(host="127.0.0.1"), LIMITS))
        arm = Arm(config.servo, lambda _: servo)
        arm.start()
        self._servo = servo
        self.runner = StepRunner(arm, Gripper(), config)
        self.runner.begin_episode(EPISODE)
        self._steps = 0

    def step(self, action, position_m, yaw_rad, spec) -> tuple[np.ndarray, tuple[str, ...]]:
        """Executed policy vector (5,) and reason codes of one requested action."""
        self._servo.rest_at(position_m, yaw_rad)
        delta = decode(action, spec)
        command = StepCommand(
            EPISODE, self._steps, delta.closedness, delta.step_m, delta.yaw_rad, age_s=0.0
        )
        refused, started = self.runner.submit(command, "")
        assert started, refused
        self._steps += 1
        (report,) = self.runner.interrupt("the test takes the next step")
        codes = tuple(reason.split(":")[0] for reason in report.reasons[:-1])
        return encode(report.executed, spec).astype(np.float32), codes


@pytest.fixture(scope="module")
def env() -> Iterator[HiddenPropertyEnv]:
    env = make_env("block_picking")
    yield env
    env.close()


def require_agreement(env: HiddenPropertyEnv, start: tuple[float, ...], actions) -> set[str]:
    """Run one episode on both sides; returns the reasons that were met."""
    env.reset(seed=0)
    x, y, z, yaw = start
    scene = dataclasses.replace(env.state().scene, tcp_position_m=(x, y, z), yaw_rad=yaw)
    env.reset(options={"scene": scene})
    driver, spec = DriverBeside(), env.contract.action
    met: set[str] = set()
    for action in actions:
        position, commanded_yaw = env.world.commanded_pose()
        _, _, terminated, truncated, info = env.step(action)
        executed, codes = driver.step(action, position, commanded_yaw, spec)
        np.testing.assert_array_equal(executed, info["executed_action"])
        assert codes == info["clip_reasons"]
        met |= set(codes)
        if terminated or truncated:
            break
    return met


positions = (st.floats(0.3, 0.7), st.floats(-0.2, 0.2), st.floats(0.1, 0.25))
component = st.floats(-2.0, 2.0)


@settings(max_examples=100, deadline=None)
@given(
    start=st.tuples(*positions, st.floats(-math.pi / 2, math.pi / 2)),
    actions=st.lists(st.tuples(*[component] * 5), min_size=1, max_size=6),
)
@example(start=(0.5625, 0.1875, 0.25, -1.0), actions=[(0.0,) * 5, (0.0, 1.0, 0.0, 0.0, 0.0)])
def test_environment_and_driver_execute_the_same_of_any_action(env, start, actions):
    require_agreement(env, start, actions)


@settings(max_examples=4, deadline=None)
@given(
    start=st.tuples(*positions, st.floats(-math.pi / 2, math.pi / 2)),
    direction=st.sampled_from([-1.0, 1.0]),
    sideways=st.tuples(component, component),
)
@example(start=(0.5, 0.0, 0.25, 1.0), direction=-1.0, sideways=(0.25, 1.0))
def test_both_stop_rotating_half_a_turn_from_the_start_of_the_episode(
    env, start, direction, sideways
):
    # Upwards, where nothing can keep the gripper from rotating.
    actions = [(-1.0, *sideways, 1.0, direction)] * 10
    assert Reason.YAW_FROM_START_CLIPPED.value in require_agreement(env, start, actions)


def test_both_name_every_kind_of_clip(env):
    actions = [(2.0, 2.0, 2.0, 2.0, 2.0)] * 10
    assert require_agreement(env, (0.69, 0.19, 0.24, 0.0), actions) == {
        Reason.CLOSEDNESS_CLIPPED.value,
        Reason.STEP_CLIPPED.value,
        Reason.YAW_STEP_CLIPPED.value,
        Reason.WORKSPACE_CLIPPED.value,
        Reason.YAW_FROM_START_CLIPPED.value,
    }


def test_after_a_new_take_over_the_driver_counts_the_rotation_the_short_way_round():
    """A take-over reads the yaw from the measured pose, where 3.5 rad is 3.5 - 2 pi."""
    driver, spec, position_m = DriverBeside(), ActionSpec(), (0.5, 0.0, 0.2)
    for yaw in (3.0, 3.0 + spec.max_yaw_step_rad):
        driver.step((-1, 0, 0, 0, 1), position_m, yaw, spec)
    yaw = 3.0 + 2 * spec.max_yaw_step_rad - 2 * math.pi
    driver.runner.resume_at(yaw)
    executed, codes = driver.step((-1, 0, 0, 0, 0.5), position_m, yaw, spec)
    assert executed[4] == pytest.approx(0.5)
    assert codes == ()
    # The limit is still half a turn from where the episode began.
    yaw = 3.0 + math.pi - 2 * math.pi
    executed, codes = driver.step((-1, 0, 0, 0, 1), position_m, yaw, spec)
    assert executed[4] == pytest.approx(0.0, abs=1e-6)
    assert codes == (Reason.YAW_FROM_START_CLIPPED.value,)
