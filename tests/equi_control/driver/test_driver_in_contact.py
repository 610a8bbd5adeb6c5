# SPDX-License-Identifier: MIT
"""Against the physics arm: an immovable block stops the step, not the robot; a block is picked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from equi_control.driver.state import DriverState
from equi_control.driver.steps import Outcome
from equi_system_tests.faults.rig import Rig

BLOCK: dict[str, Any] = {"kind": "block", "position_m": [0.5, 0.0, 0.025], "yaw_rad": 0.0}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def rig() -> Iterator[Rig]:
    with Rig(arm="physics", link={"watchdog_hz": 2.0}, max_state_age_s=2.0) as running:
        running.take_over()
        yield running


def test_pushing_an_immovable_block_ends_the_step_as_blocked_and_the_driver_goes_on(
    rig: Rig,
) -> None:
    block = {**BLOCK, "position_m": [0.6, 0.0, 0.025], "movable": False}
    rig.emulator.api.request("set_scene", scene={"objects": [block]})
    for step in ((0.0, 0.0, -0.05),) * 3 + ((0.0, 0.0, -0.03),):
        rig.submit(step, closedness=1.0)
        rig.finish_step()

    outcomes = []
    for _ in range(3):
        (report,) = rig.submit((0.05, 0.0, 0.0), closedness=1.0) + rig.finish_step()
        outcomes.append(report)

    assert rig.driver.state is DriverState.HOLD, rig.driver.fault
    assert any(
        report.outcome is Outcome.INTERRUPTED and report.reasons[-1].startswith("blocked")
        for report in outcomes
    ), [report.reasons for report in outcomes]
    # The block's face is at 0.575 m; the closed fingers end before it.
    assert rig.measured_m()[0] < 0.575
    (report,) = rig.submit((-0.05, 0.0, 0.0), closedness=1.0) + rig.finish_step()
    assert report.outcome is Outcome.COMPLETED


def test_the_driver_picks_a_block(rig: Rig) -> None:
    rig.emulator.api.request("set_scene", scene={"objects": [{**BLOCK, "movable": True}]})
    for step in ((0.0, 0.0, -0.05),) * 3 + ((0.0, 0.0, -0.03),):
        rig.submit(step)
        rig.finish_step()

    (grasp,) = rig.submit((0.0, 0.0, 0.0), closedness=1.0) + rig.finish_step()
    rig.submit((0.0, 0.0, 0.05), closedness=1.0)
    rig.finish_step()
    rig.submit((0.0, 0.0, 0.05), closedness=1.0)
    (lifted,) = rig.finish_step()

    assert grasp.holding
    assert lifted.holding
    scene = rig.emulator.api.request("get_scene")["scene"]
    assert scene["objects"][0]["position_m"][2] > 0.09
