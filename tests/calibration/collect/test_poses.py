# SPDX-License-Identifier: MIT
"""The tour of the board: every camera gets its views, over ways that are clear."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from calibration_cells import LENS, simulated_cell

from equi_calibration.collect.poses import path_is_clear, plan_poses
from equi_core.motion.ur5_kinematics import HOME_RAD


@pytest.mark.parametrize("seed", [0, 119])  # 119 used to end at a stop without a way onwards
def test_a_tour_shows_the_board_to_every_camera_over_clear_ways(seed):
    cell = simulated_cell()
    tour = plan_poses(cell, {name: LENS for name in cell.names}, 30, seed)
    for name in cell.names:
        assert sum(pose.faces == name for pose in tour) >= 12
    ready = np.asarray(HOME_RAD)
    for here, there in itertools.pairwise(pose.joints_rad for pose in tour):
        over_ready = path_is_clear(cell, here, ready) and path_is_clear(cell, ready, there)
        assert path_is_clear(cell, here, there) or over_ready
