# SPDX-License-Identifier: MIT
"""The fault table with the driver's strict defaults, as `equi-faults` runs it."""

from __future__ import annotations

import pytest

from equi_system_tests.faults.fault_case import FaultCase, Robot
from equi_system_tests.faults.fault_table import CASES


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("profile", ["lenient", "strict"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fault_while_moving_ends_as_the_table_says(case: FaultCase, profile: str) -> None:
    if case.strict_only and profile != "strict":
        pytest.skip("a lenient robot cannot show this fault")
    result = case.run(Robot("kinematic", profile))

    assert result.passed, result
