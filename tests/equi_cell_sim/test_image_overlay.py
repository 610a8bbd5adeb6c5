# SPDX-License-Identifier: MIT
"""The simulator draws what other packages offer, without importing them."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from equi_cell_sim.camera_model import CameraSpec
from equi_cell_sim.image_overlay import OverlayError, load_overlay
from equi_rl.sim.raycast import ShapeTable
from equi_rl.sim.robot_model import robot_model

ROOT = Path(__file__).resolve().parents[2]
SPEC = CameraSpec("cam_left", (0.60, 0.72, 0.62), target_m=(0.5, 0.0, 0.15))


def test_an_overlay_that_is_not_installed_is_refused_with_those_that_are():
    with pytest.raises(OverlayError, match=r"'hologram' is not installed; installed are: .*board"):
        load_overlay("hologram", SPEC, SPEC.base_from_camera)


def test_the_board_of_calibration_appears_in_the_image_of_the_arm():
    overlay = load_overlay("board", SPEC, SPEC.base_from_camera)
    joints = np.radians([0, -90, 90, -90, -90, 0, *[0] * (len(robot_model().joint_names) - 6)])
    scene = ShapeTable.joined(robot_model().posed_shapes(list(joints)))
    image = np.full((SPEC.height_px, SPEC.width_px, 3), 90, np.uint8)

    overlay.draw(image, scene)

    drawn = image[np.any(image != 90, axis=2)]
    assert len(drawn) > 500


@pytest.mark.parametrize(("argument", "overlay"), [("true", "board"), ("false", "")])
def test_the_launch_argument_calibration_board_names_the_overlay(argument, overlay):
    launch_file = runpy.run_path(str(ROOT / "launch" / "cell_sim.launch.py"))
    passed = {}
    launch = SimpleNamespace(
        cell=SimpleNamespace(cameras={"cam_left": SPEC}),
        value=lambda name: "0",
        flag=lambda name: {"calibration_board": argument}[name] == "true",
        node=lambda package, executable, name, own, **_: passed.update(own),
    )

    launch_file["camera_node"](launch, "cam_left", "/tmp/scene")

    assert passed["overlay"] == overlay
