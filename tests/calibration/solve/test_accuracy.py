# SPDX-License-Identifier: MIT
"""Accuracy of the whole procedure on rendered images, over seeds."""

from __future__ import annotations

import pytest
from calibration_cells import simulated_cell
from scipy.stats import chi2

from equi_system_tests.studies.calibration_accuracy import run_seed


def require_accurate(seeds):
    distances = []
    for seed in seeds:
        result = run_seed(simulated_cell(), seed)
        assert result.passed, seed
        for error in result.errors.values():
            assert error.position_mm < 2.0
            assert error.rotation_deg < 0.2
            distances.append(error.squared_distance)
    # The stated uncertainty is right if these are chi-square values with 6 degrees of freedom.
    assert sum(distances) < chi2.ppf(0.9999, 6 * len(distances))


def test_a_cell_from_5_cm_and_5_degrees_off_is_found_to_2_mm_and_a_fifth_of_a_degree():
    require_accurate(range(1))


@pytest.mark.slow
def test_ten_cells_from_5_cm_and_5_degrees_off_are_found_to_2_mm_and_a_fifth_of_a_degree():
    require_accurate(range(10))
