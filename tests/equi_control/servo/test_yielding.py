# SPDX-License-Identifier: MIT
"""A blocked arm goes back on its way, unless that presses it more: then it stands where it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from equi_control.rtde.config import LinkConfig
from equi_control.rtde.robot_reading import Reading
from equi_control.servo.config import ServoConfig
from equi_control.servo.streamer import Streamer
from equi_control.servo.yielding import ContactYielding
from equi_core.cell_geometry import CellGeometry
from equi_core.geometry import top_down_pose
from equi_core.motion.ur5_kinematics import HOME_RAD, inverse_near
from ur_emulator.profile import STRICT

PERIOD_S = 0.008
CONFIG = ServoConfig(LinkConfig("127.0.0.2"))
START_M = np.array([0.5, 0.0, 0.054])
STEP_M = np.array([0.028, 0.0, -0.004])

TOP_M = 0.0525
Surface = Callable[[float], float]
"""Height [m] of what lies under a tool that was drawn back by so much [m] since it touched it."""


def rigid(_drawn_back_m: float) -> float:
    return TOP_M


def tilted_block(drawn_back_m: float) -> float:
    """Stands up on its edge while the tool that presses on it is drawn back."""
    return TOP_M + 1.2 * drawn_back_m


class StiffArm:
    """Follows its target exactly, and is lifted off it by what it presses on."""

    def __init__(self, surface: Surface) -> None:
        self._surface, self._farthest_m = surface, 0.0
        self.target = top_down_pose(START_M, 0.0)
        self.forces_n: list[float] = []

    def servo(self, base_link_from_tcp: np.ndarray, _period_s: float) -> bool:
        self.target = base_link_from_tcp
        return True

    def brake(self, _deceleration_m_s2: float) -> bool:
        return True

    def read(self) -> Reading:
        reached, force = self.target.copy(), np.zeros(6)
        x_m, z_m = float(reached[0, 3]), float(reached[2, 3])
        if z_m < TOP_M:
            self._farthest_m = max(self._farthest_m, x_m)
        if self._farthest_m:
            reached[2, 3] = max(z_m, self._surface(max(0.0, self._farthest_m - x_m)))
            force[2] = STRICT.arm_stiffness_n_m * (reached[2, 3] - z_m)
        self.forces_n.append(float(force[2]))
        flange = reached @ np.linalg.inv(CellGeometry().flange_from_tcp)
        return Reading(
            base_link_from_tcp=reached,
            base_link_from_target_tcp=self.target,
            twist=np.zeros(6),
            wrench=force,
            joints_rad=inverse_near(flange, HOME_RAD),
            joint_speeds_rad_s=np.zeros(6),
            controller_time_s=0.0,
            age_s=0.0,
            connected=True,
            program_state=2,
            robot_mode=7,
            safety_mode=1,
            safety_bits=1,
        )


def blocked_on(surface: Surface) -> StiffArm:
    """The arm after a second in which a step met the surface."""
    arm = StiffArm(surface)
    streamer = Streamer(arm.read(), CONFIG, PERIOD_S)
    yielding = ContactYielding(arm, CONFIG, PERIOD_S)
    for _ in range(30):
        yielding.see(arm.read())
    yielding.begin_step()
    streamer.set_target([*(START_M + STEP_M), 0.0])
    for _ in range(400):
        reading = arm.read()
        yielding.see(reading)
        assert yielding.watch(streamer, reading)
        streamer.advance()
        arm.servo(streamer.pose, PERIOD_S)
    assert yielding.blocked
    return arm


@pytest.mark.parametrize("surface", [rigid, tilted_block])
def test_a_blocked_arm_never_presses_as_much_as_a_protective_stop_takes(surface: Surface) -> None:
    arm = blocked_on(surface)
    assert max(arm.forces_n) < 0.9 * STRICT.force_limit_n
    assert arm.forces_n[-1] < CONFIG.contact_force_n


def test_drawn_back_along_its_way_the_arm_on_the_tilted_block_would_press_ever_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("equi_control.servo.yielding.PRESSED_MORE_N", float("inf"))
    arm = blocked_on(tilted_block)
    assert arm.forces_n[-1] == max(arm.forces_n)
    assert arm.forces_n[-1] > CONFIG.contact_force_n
