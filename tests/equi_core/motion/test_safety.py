# SPDX-License-Identifier: MIT
"""The safety filter case by case: what is clipped, what is refused, and what it says."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from equi_core.contract import ActionSpec, Workspace
from equi_core.motion.safety import (
    RobotInput,
    SafeCommand,
    StepCommand,
    filter_command,
    guard_setpoint,
)
from equi_core.motion.safety_limits import SafetyLimits
from equi_core.step_limits import LimitsError, Reason

LIMITS = SafetyLimits()
CENTRE = (0.5, 0.0, 0.1)
GOOD_COMMAND = StepCommand("e", 1, 0.5, (0.01, -0.02, 0.03), 0.1, 0.01)
GOOD_ROBOT = RobotInput(CENTRE, 0.2, CENTRE, 0.0, 0.01, 0)


def filtered(**changes: Any) -> SafeCommand:
    """The answer to a good command with some changes; `robot__x` changes the robot's state."""
    command, robot = GOOD_COMMAND, GOOD_ROBOT
    command_names = {field.name for field in dataclasses.fields(StepCommand)}
    for name, value in changes.items():
        prefix, _, field = name.partition("__")
        if prefix == "robot":
            robot = dataclasses.replace(robot, **{field: value})
        else:
            assert name in command_names
            command = dataclasses.replace(command, **{name: value})
    return filter_command(command, robot, LIMITS)


def test_a_good_command_passes_unchanged_and_without_reasons() -> None:
    safe = filtered()

    assert safe.accepted
    assert safe.issues == ()
    np.testing.assert_allclose(safe.target_position_m, (0.51, -0.02, 0.13))
    assert safe.target_yaw_rad == pytest.approx(0.3)
    np.testing.assert_allclose(safe.executed.step_m, (0.01, -0.02, 0.03))
    assert safe.executed.closedness == 0.5


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"step_m": (math.nan, 0, 0)}, Reason.NOT_FINITE),
        ({"yaw_rad": math.inf}, Reason.NOT_FINITE),
        ({"step_m": (0, 0)}, Reason.MALFORMED),
        ({"closedness": "shut"}, Reason.MALFORMED),
        ({"age_s": 0.3}, Reason.STALE_COMMAND),
        ({"age_s": math.nan}, Reason.STALE_COMMAND),
        ({"age_s": -0.5}, Reason.FUTURE_COMMAND),
        ({"step_index": 0}, Reason.OUT_OF_ORDER),
        ({"robot__age_s": 0.2}, Reason.STALE_STATE),
        ({"robot__measured_position_m": (0.5, math.nan, 0.1)}, Reason.STATE_NOT_FINITE),
        ({"robot__measured_position_m": (0.5, 0.06, 0.1)}, Reason.TRACKING_ERROR),
        (
            {
                "robot__measured_position_m": (0.5, 0.0, 0.4),
                "robot__commanded_position_m": (0.5, 0.0, 0.4),
            },
            Reason.OUTSIDE_WORKSPACE,
        ),
    ],
)
def test_what_cannot_be_made_safe_becomes_a_hold_with_its_reason(
    changes: dict[str, Any], reason: Reason
) -> None:
    safe = filtered(**changes)

    assert not safe.accepted
    assert reason in safe.reasons
    assert safe.executed.step_m == (0.0, 0.0, 0.0)
    assert "must be" in safe.issues[0].message


@pytest.mark.parametrize(
    ("changes", "reason", "target"),
    [
        ({"step_m": (9.0, 0.0, 0.0)}, Reason.STEP_CLIPPED, (0.55, 0.0, 0.1, 0.3)),
        ({"yaw_rad": -2.0}, Reason.YAW_STEP_CLIPPED, (0.51, -0.02, 0.13, 0.2 - math.pi / 8)),
        ({"closedness": 7.0}, Reason.CLOSEDNESS_CLIPPED, (0.51, -0.02, 0.13, 0.3)),
        (
            {
                "robot__commanded_position_m": (0.5, 0.0, 0.03),
                "robot__measured_position_m": (0.5, 0.0, 0.03),
                "step_m": (0.0, 0.0, -0.05),
            },
            Reason.WORKSPACE_CLIPPED,
            (0.5, 0.0, 0.01, 0.3),
        ),
        (
            {"robot__commanded_yaw_rad": LIMITS.yaw_range_rad - 0.01},
            Reason.YAW_RANGE_CLIPPED,
            (0.51, -0.02, 0.13, LIMITS.yaw_range_rad),
        ),
    ],
)
def test_what_can_be_made_safe_is_clipped_with_its_reason(
    changes: dict[str, Any], reason: Reason, target: tuple[float, ...]
) -> None:
    safe = filtered(**changes)

    assert safe.reasons == (reason,)
    assert safe.target_position_m is not None
    np.testing.assert_allclose([*safe.target_position_m, safe.target_yaw_rad], target)


def test_an_arm_slightly_outside_is_led_back_into_the_box() -> None:
    outside = (0.5, 0.21, 0.1)

    safe = filtered(
        robot__commanded_position_m=outside,
        robot__measured_position_m=outside,
        step_m=(0.0, 0.05, 0.0),
    )

    assert safe.target_position_m == (0.5, 0.2, 0.1)
    assert Reason.WORKSPACE_CLIPPED in safe.reasons
    np.testing.assert_allclose(safe.executed.step_m, (0.0, -0.01, 0.0))


def test_the_stricter_of_contract_and_cell_wins_limit_by_limit() -> None:
    cell = SafetyLimits(
        workspace=Workspace(x_max_m=0.6, z_min_m=0.0), max_step_m=0.08, max_speed_m_s=0.1
    )

    limits = cell.within_contract(ActionSpec(max_step_m=0.05), Workspace())

    assert limits.workspace == Workspace(x_max_m=0.6, z_min_m=0.01)
    assert limits.max_step_m == 0.05
    assert limits.max_speed_m_s == 0.1


def test_workspaces_without_common_room_are_refused_by_name() -> None:
    with pytest.raises(LimitsError, match="no common x range"):
        SafetyLimits().stricter_of(SafetyLimits(workspace=Workspace(x_min_m=0.8, x_max_m=0.9)))


def test_a_limit_that_is_not_positive_is_refused_by_name() -> None:
    with pytest.raises(LimitsError, match="max_speed_m_s"):
        SafetyLimits(max_speed_m_s=0.0)


def test_the_guard_passes_an_obedient_set_point_and_keeps_the_last_good_one_otherwise() -> None:
    previous = np.array([0.5, 0.0, 0.1])
    obedient = guard_setpoint((0.501, 0.0, 0.1), 0.2, previous, 0.2, 0.008, LIMITS)
    jump = guard_setpoint((0.6, 0.0, 0.1), 0.2, previous, 0.2, 0.008, LIMITS)
    not_a_number = guard_setpoint((math.nan, 0.0, 0.1), 0.2, previous, 0.2, 0.008, LIMITS)
    edge = np.array([0.5, 0.0, 0.01])
    below = guard_setpoint((0.5, 0.0, 0.009), 0.2, edge, 0.2, 0.008, LIMITS)

    assert obedient.issues == ()
    np.testing.assert_array_equal(obedient.position_m, (0.501, 0.0, 0.1))
    for refused, reason, kept in (
        (jump, Reason.SPEED_LIMITED, previous),
        (not_a_number, Reason.NOT_FINITE, previous),
        (below, Reason.OUTSIDE_WORKSPACE, edge),
    ):
        assert refused.issues[0].reason is reason
        np.testing.assert_array_equal(refused.position_m, kept)
