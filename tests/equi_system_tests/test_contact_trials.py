# SPDX-License-Identifier: MIT
"""Full policy steps into something rigid, on the strict arm: noticed, and no more than that."""

from __future__ import annotations

import pytest

from equi_core.motion.blocked_step import MOST_BACK_OFF_M
from equi_system_tests.faults.contact_trials import LAB_LINK, run_trials


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "link",
    [
        pytest.param(LAB_LINK, id="lab"),
        pytest.param({}, id="sim", marks=pytest.mark.slow),
    ],
)
def test_a_noticed_contact_neither_stops_the_robot_nor_throws_the_arm_back(
    link: dict[str, float],
) -> None:
    trials = run_trials(2, seed=3, link=link)

    assert [trial.noticed for trial in trials] == [True, True]
    assert not any(trial.protective_stop for trial in trials)
    assert max(trial.retreat_mm for trial in trials) <= 1e3 * MOST_BACK_OFF_M
