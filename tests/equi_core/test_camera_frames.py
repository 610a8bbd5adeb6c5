# SPDX-License-Identifier: MIT
"""Camera frames as realsense-ros has them: the link looks along x, the optical frame along z."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from equi_core.camera_frames import LINK_FROM_OPTICAL, base_from_camera_link, camera_of


def test_the_optical_frame_is_turned_as_the_driver_turns_it():
    # Roll -90, pitch 0, yaw -90 degrees: what realsense-ros publishes from depth to optical frame.
    rotation = Rotation.from_euler("xyz", [-90, 0, -90], degrees=True).as_matrix()
    np.testing.assert_allclose(LINK_FROM_OPTICAL[:3, :3], rotation, atol=1e-15)


def test_a_camera_that_looks_down_has_its_link_pointing_down():
    base_from_optical = np.diag([1.0, -1.0, -1.0, 1.0])  # z down, x along x of the base
    base_from_optical[:3, 3] = (0.5, 0.0, 0.9)
    link = base_from_camera_link(base_from_optical)
    np.testing.assert_allclose(link[:3, 0], [0, 0, -1], atol=1e-15)  # x forward
    np.testing.assert_allclose(link[:3, 1], [-1, 0, 0], atol=1e-15)  # y left
    np.testing.assert_allclose(link[:3, 3], [0.5, 0.0, 0.9])
    np.testing.assert_allclose(link @ LINK_FROM_OPTICAL, base_from_optical, atol=1e-15)


def test_the_camera_is_found_in_the_name_of_its_frame():
    assert camera_of("cam_left_depth_optical_frame") == "cam_left"
    assert camera_of("cam_left_color_optical_frame") == ""
