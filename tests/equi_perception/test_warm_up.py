# SPDX-License-Identifier: MIT
"""Specification of the warm-up: whatever is compiled, is compiled before the first cloud comes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equi_core.calibration import CellCalibration
from equi_core.contract import ImageSpec
from equi_core.observation import projection
from equi_core.observation.builder import ObservationBuilder, RobotPose
from equi_core.observation.image import ObservationError

CAMERAS = ("cam_left", "cam_right")
REPOSITORY = Path(__file__).resolve().parents[2]
ROBOT = RobotPose((0.0, -1.57, 1.57, -1.57, -1.57, 0.0), (0.5, 0.0, 0.2), 0.0, 1.0, False)


@pytest.mark.parametrize("columns", [3, 4, 5])
def test_after_the_warm_up_the_bytes_of_a_message_compile_nothing(columns):
    calibration = CellCalibration.load(REPOSITORY / "calibration" / "results" / "sim")
    poses = {name: calibration.camera(name).base_from_raw_points for name in CAMERAS}
    builder = ObservationBuilder(ImageSpec(), poses)
    builder.warm_up()
    compiled = list(projection._splat.signatures)
    message = np.frombuffer(bytes(4 * columns * 10), np.float32).reshape(-1, columns)
    for points in (message, message.copy()):
        with pytest.raises(ObservationError):
            builder.build(dict.fromkeys(CAMERAS, points), ROBOT)
    assert projection._splat.signatures == compiled
