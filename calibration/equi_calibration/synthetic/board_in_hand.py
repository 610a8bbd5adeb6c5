# SPDX-License-Identifier: MIT
"""The board in the hand of the simulated cell's arm, drawn into its cameras' colour images.

The camera process sees shapes only; where the hand is follows from the robot's shapes among them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equi_calibration.errors import CollectError
from equi_calibration.synthetic.board_render import default_board, draw_board
from equi_calibration.synthetic.depth_camera import intrinsics_of_spec
from equi_cell_sim.camera_model import CameraSpec
from equi_core.cell_geometry import CellGeometry
from equi_core.geometry import invert, pose_matrix
from equi_rl.sim.raycast import ShapeTable
from equi_rl.sim.robot_model import FLANGE_LINK, robot_model

FloatArray = NDArray[np.float64]


class BoardInHand:
    """Draws the default board for one camera (`equi_cell_sim.image_overlay.ImageOverlay`)."""

    def __init__(self, spec: CameraSpec, base_from_camera: FloatArray) -> None:
        self._lens = intrinsics_of_spec(spec)
        self._camera_from_base = invert(base_from_camera)
        self._board, self._tcp_from_board = default_board()

    def draw(self, colour: NDArray[np.uint8], table: ShapeTable) -> None:
        """Draw the board into an 8-bit image (H, W, 3), in place. Nothing hides it."""
        camera_from_board = self._camera_from_base @ hand_pose(table) @ self._tcp_from_board
        draw_board(colour, None, self._board, self._lens, camera_from_board)


def hand_pose(table: ShapeTable) -> FloatArray:
    """`base_from_tcp` (4, 4) of the robot among the shapes of a scene."""
    model = robot_model()
    rows = np.flatnonzero(table.body == model.shapes.body[0])
    if len(rows) != len(model.shapes):
        raise CollectError(
            f"the scene shows {len(rows)} robot shapes, the robot has {len(model.shapes)}; "
            "is the robot part of the scene?"
        )
    shape = int(np.flatnonzero(model.shape_link == model.link_names.index(FLANGE_LINK))[0])
    flange_from_shape = pose_matrix(model.shapes.position_m[shape], model.shapes.rotation[shape])
    base_from_shape = pose_matrix(table.position_m[rows[shape]], table.rotation[rows[shape]])
    return base_from_shape @ invert(flange_from_shape) @ CellGeometry().flange_from_tcp
