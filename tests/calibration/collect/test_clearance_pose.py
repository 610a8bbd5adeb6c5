# SPDX-License-Identifier: MIT
"""Clearance pose: where the arm waits while the clouds of the table are taken."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from calibration_cells import simulated_cell

from equi_calibration.cell_file import Box
from equi_calibration.collect.clearance_pose import clearance_joints, occluded_fraction
from equi_calibration.collect.poses import joints_are_clear, path_is_clear
from equi_calibration.errors import CollectError
from equi_core.motion.ur5_kinematics import HOME_RAD


def test_in_its_clearance_pose_the_arm_leaves_the_table_in_view_and_the_path_there_is_clear():
    cell = simulated_cell()
    joints = clearance_joints(cell)
    assert joints_are_clear(cell, joints)
    assert path_is_clear(cell, np.asarray(HOME_RAD), joints)
    assert occluded_fraction(cell, joints) < 0.05
    assert occluded_fraction(cell, np.asarray(HOME_RAD)) > 0.3


def test_boxes_without_room_for_the_arm_are_refused_by_name():
    cell = simulated_cell()
    narrow = dataclasses.replace(cell.collect, tcp_box=Box((1.5, 1.5, 0.1), (1.6, 1.6, 0.2)))
    with pytest.raises(CollectError, match="no clearance pose was found"):
        clearance_joints(dataclasses.replace(cell, collect=narrow))
