# SPDX-License-Identifier: MIT
"""Files that earlier versions of the software wrote still load, with the same content.

`stored/` was written before modules and types were renamed; nothing in it is ever regenerated.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from equi_calibration.collect.dataset import load_dataset
from equi_calibration.solve.solution import Solution

STORED = Path(__file__).parent / "stored"


def test_a_stored_dataset_loads_with_every_file_verified():
    dataset = load_dataset(STORED / "dataset")

    assert (dataset.cell, dataset.created_utc) == ("sim", "2026-11-01T08:00:00+00:00")
    assert dataset.board.columns == 6
    assert dataset.cameras["cam_right"].serial == "SIM-cam_right"
    assert dataset.cameras["cam_left"].intrinsics.fx_px == 20.0
    assert [pose.stamp_s for pose in dataset.poses] == [1000.0, 1001.0]
    np.testing.assert_array_equal(
        dataset.image(dataset.poses[1], "cam_left"), np.full((24, 32), 101)
    )
    np.testing.assert_allclose(
        dataset.cloud(dataset.scenes[0], "cam_left"), [[0.0, 0.0, 1.0], [0.1, 0.0, 1.0]], atol=1e-7
    )


def test_a_stored_solution_loads_and_is_written_as_the_same_bytes(tmp_path):
    solution = Solution.load(STORED / "solution.json")

    left = solution.cameras["cam_left"]
    np.testing.assert_array_equal(
        left.position_m, [0.5839935965479346, 0.7365867028476687, 0.5751852187797573]
    )
    assert left.intrinsics.width_px == 640
    assert left.views == 19
    assert solution.save(tmp_path).read_bytes() == (STORED / "solution.json").read_bytes()
