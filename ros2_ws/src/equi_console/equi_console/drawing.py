# SPDX-License-Identifier: MIT
"""Pictures for the page: what the policy sees, with what it is about to do and what it believes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_console.desk_state import DeskState, StepView
from equi_console.scene.placement import by_place
from equi_core.contract import ImageSpec
from equi_core.files.scene_layout import SceneLayout
from equi_evaluation.episode_video import depth_image, draw_beliefs

BgrImage = NDArray[np.uint8]

TOP_VIEW_PX = 420
_REQUESTED, _EXECUTED = (200, 120, 30), (60, 60, 210)  # BGR
_WANTED = (40, 220, 240)
_JPEG_QUALITY = 80


def top_view(state: DeskState, view_m: float = ImageSpec().view_m) -> bytes:
    """The fused top-down image with fingers, belief, the requested and the executed step (JPEG)."""
    if state.observation is None:
        return blank(TOP_VIEW_PX, "no observation yet")
    drawn = depth_image(state.observation, TOP_VIEW_PX)
    draw_beliefs(drawn, list(state.beliefs), view_m)
    if state.layout is not None:
        _draw_layout(drawn, state.layout, state.gripper_at_m, view_m)
    requested, executed = state.requested, state.executed
    if requested is not None:
        if executed is not None and executed.step_index == requested.step_index:
            _arrow(drawn, executed, view_m, _EXECUTED)
        _arrow(drawn, requested, view_m, _REQUESTED)
        text = f"step {requested.step_index}  gripper {requested.closedness:.2f}"
        _label(drawn, text, (8, TOP_VIEW_PX - 10))
    return jpeg(drawn)


def _draw_layout(
    drawn: BgrImage, layout: SceneLayout, centre_m: tuple[float, float], view_m: float
) -> None:
    """Outlines of the next scene, all in one colour: which object is movable stays hidden."""
    size = drawn.shape[0]
    for name, item in by_place(layout.objects):
        half_x, half_y = item.size_m[0] / 2, item.size_m[1] / 2
        c, s = math.cos(item.yaw_rad), math.sin(item.yaw_rad)
        corners = []
        for along, across in ((1, 1), (1, -1), (-1, -1), (-1, 1)):
            x = item.x_m + c * along * half_x - s * across * half_y - centre_m[0]
            y = item.y_m + s * along * half_x + c * across * half_y - centre_m[1]
            corners.append((size * (0.5 + y / view_m), size * (0.5 + x / view_m)))
        outline = np.array(corners, dtype=np.int32)
        cv2.polylines(drawn, [outline], True, _WANTED, 1, cv2.LINE_AA)
        # Inside the picture, also for an object that is partly beside it.
        column, row = int(outline[:, 0].min()), int(outline[:, 1].min()) - 4
        _label(drawn, name, (min(max(column, 4), size - 14), min(max(row, 14), size - 6)))


def side_view(rgb: NDArray[np.uint8], width_px: int = 320) -> bytes:
    """A camera's picture, small (JPEG)."""
    height, width = rgb.shape[:2]
    size = (width_px, round(width_px * height / width))
    small = cv2.resize(rgb, size, interpolation=cv2.INTER_AREA)
    return jpeg(np.asarray(small[..., ::-1], dtype=np.uint8))


def blank(size_px: int, text: str) -> bytes:
    """A grey picture that says why there is none."""
    drawn = np.full((size_px, size_px, 3), 60, dtype=np.uint8)
    _label(drawn, text, (12, size_px // 2))
    return jpeg(drawn)


def jpeg(image: BgrImage) -> bytes:
    """A picture as JPEG."""
    _, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
    return bytes(data.tobytes())


def _arrow(drawn: BgrImage, step: StepView, view_m: float, colour: Sequence[int]) -> None:
    """From the gripper, in the middle, to where the step leads: rows are x, columns y."""
    size = drawn.shape[0]
    x, y, z = step.step_m
    middle = (size // 2, size // 2)
    end = (int(size * (0.5 + y / view_m)), int(size * (0.5 + x / view_m)))
    cv2.arrowedLine(drawn, middle, end, colour, 3, cv2.LINE_AA, tipLength=0.25)
    down = "down" if z < 0 else "up"
    _label(drawn, f"{down} {abs(1e3 * z):.0f} mm", (end[0] + 6, end[1]))


def _label(drawn: BgrImage, text: str, at: tuple[int, int]) -> None:
    for colour, width in (((0, 0, 0), 3), ((255, 255, 255), 1)):
        cv2.putText(drawn, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.45, colour, width, cv2.LINE_AA)
