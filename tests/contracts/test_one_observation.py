# SPDX-License-Identifier: MIT
"""Law: one observation. What the robot's cameras fuse is what training draws of the same scene."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from equi_cell_sim.camera_model import CameraRig, Miscalibration
from equi_rl.envs import TASKS
from equi_system_tests.studies.observation_check import ObservationCheck, summary

SCENES = 6
REPOSITORY = Path(__file__).resolve().parents[2]
STAGES = {"robot_volume", "fuse_clouds"}
"""Functions that only the builder may put together."""


def test_one_object_composes_the_observation_of_node_studies_and_benchmark():
    """The node, the check below, the studies and the benchmark: none has a pipeline of its own."""
    composing = set()
    for root in ("ros2_ws/src", "training", "calibration"):
        for path in (REPOSITORY / root).rglob("*.py"):
            names = {
                alias.name
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(node, ast.ImportFrom)
                for alias in node.names
            }
            if names & STAGES:
                composing.add(path.name)
    assert composing == {"builder.py"}


@pytest.mark.parametrize("task", TASKS)
def test_exact_cameras_see_what_training_draws(task):
    """Bound: 0.5 mm away from edges; whole pixels differ only at edges and where nobody sees."""
    check = ObservationCheck(task, CameraRig().without_errors(), seed=3)
    results = [check.compare(index) for index in range(SCENES)]
    check.close()
    figures = summary(results)
    assert figures["flat_p95_mm"] < 0.5
    assert figures["wrong_fraction"] < 0.04
    for item in results:
        np.testing.assert_array_equal(item.true[1], item.fused[1])
        fingers = item.true[0] == 0.0
        assert fingers.any()
        np.testing.assert_array_equal(item.fused[0][fingers], 0.0)


@pytest.mark.parametrize("task", TASKS)
def test_with_the_default_errors_the_images_stay_close(task):
    """Bound: 8 mm away from edges (noise 2 mm at 1 m, miscalibration 2 mm and 0.15 degrees)."""
    rig = dataclasses.replace(CameraRig(), miscalibration=Miscalibration(2.0, 0.15))
    check = ObservationCheck(task, rig, seed=3)
    figures = summary([check.compare(index) for index in range(SCENES)])
    check.close()
    assert figures["flat_p95_mm"] < 8.0
    assert figures["wrong_fraction"] < 0.06
    assert figures["unseen_fraction"] < 0.15


def test_a_grown_miscalibration_is_seen_by_the_check():
    """The comparison would notice: a camera two centimetres off is far outside the bounds."""
    rig = dataclasses.replace(
        CameraRig().without_errors(), miscalibration=Miscalibration(20.0, 2.0)
    )
    check = ObservationCheck("block_picking", rig, seed=3)
    figures = summary([check.compare(index) for index in range(SCENES)])
    check.close()
    assert figures["flat_p95_mm"] > 8.0
