# SPDX-License-Identifier: MIT
"""What other packages draw into the simulated colour images, found by entry point.

A package offers an overlay in its own metadata, so the simulator does not know the package:

    [project.entry-points."equi_cell_sim.overlays"]
    board = "equi_calibration.synthetic.board_in_hand:BoardInHand"
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equi_cell_sim.camera_model import CameraSpec
from equi_rl.sim.raycast import ShapeTable

OVERLAY_GROUP = "equi_cell_sim.overlays"


class OverlayError(ValueError):
    """An overlay that is not installed; says which ones are."""


class ImageOverlay(Protocol):
    """Draws something into the images of one camera."""

    def draw(self, colour: NDArray[np.uint8], table: ShapeTable) -> None:
        """Draw into an 8-bit RGB image (H, W, 3), in place, given the shapes of the scene."""


OverlayFactory = Callable[[CameraSpec, NDArray[np.float64]], ImageOverlay]
"""Makes the overlay of a camera from its spec and its true pose base_from_camera (4, 4)."""


def load_overlay(
    name: str, spec: CameraSpec, base_from_camera: NDArray[np.float64]
) -> ImageOverlay:
    """The installed overlay of that name, for one camera.

    Raises:
        OverlayError: no installed package offers it.
    """
    installed = entry_points(group=OVERLAY_GROUP)
    if name not in installed.names:
        offered = ", ".join(sorted(installed.names)) or "none"
        raise OverlayError(
            f"image overlay '{name}' is not installed; installed are: {offered}. The overlay "
            "'board' comes with equi_calibration (pip install -e calibration)"
        )
    factory: OverlayFactory = installed[name].load()
    return factory(spec, base_from_camera)
