# SPDX-License-Identifier: MIT
"""The tour of the board: every camera gets its views, over ways that are clear."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from calibration_cells import LENS, simulated_cell

from equi_calibration.cell_file import Box
from equi_calibration.collect.poses import (
    joints_are_clear,
    path_is_clear,
    plan_poses,
    reachable_joints,
)
from equi_calibration.collect.rtde_arm import farthest_reach_m
from equi_core.geometry import top_down_pose
from equi_core.motion.arm_models import ARM_MODELS, UR5
from equi_core.motion.ur5_kinematics import HOME_RAD, forward


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


@pytest.mark.parametrize("name", sorted(ARM_MODELS))
def test_a_pose_is_reached_and_kept_clear_with_the_links_of_the_cells_own_arm(name):
    cell = dataclasses.replace(simulated_cell(), arm=ARM_MODELS[name])
    at_home = forward(HOME_RAD, cell.arm) @ cell.geometry.flange_from_tcp
    wanted = top_down_pose(at_home[:3, 3] + (-0.02, 0.03, 0.02), 0.2)
    joints = reachable_joints(cell, wanted)
    assert joints is not None
    reached = forward(joints, cell.arm) @ cell.geometry.flange_from_tcp
    np.testing.assert_allclose(reached, wanted, atol=1e-9)
    # With another arm's links the TCP seems centimetres away, so a box around it is left.
    tight = Box(tuple(wanted[:3, 3] - 0.005), tuple(wanted[:3, 3] + 0.005))
    boxed = dataclasses.replace(
        cell,
        collect=dataclasses.replace(cell.collect, tcp_box=tight, table_clearance_m=-1.0),
    )
    if name != "ur5":
        assert not joints_are_clear(dataclasses.replace(boxed, arm=UR5), joints)


def test_a_longer_arm_turns_its_joints_more_slowly():
    assert farthest_reach_m(UR5) == pytest.approx(0.9, abs=1e-12)
    assert farthest_reach_m(ARM_MODELS["ur10"]) == pytest.approx(1.304, abs=0.001)
