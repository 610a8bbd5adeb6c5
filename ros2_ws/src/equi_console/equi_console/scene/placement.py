# SPDX-License-Identifier: MIT
"""Whether the scene is arranged as the protocol wants it: blocks in the height map, measured.

A block's outline is fitted to the raised pixels around the place where it should stand; pixels
under the drawn fingers count neither way. Two cameras that do not agree to the millimetre show a
block wider than it is, so the outline may be wider, too: one of exactly the known size would have
room to slide about in such a blot. "Ready" is what this says, not an eye. The names A and B follow
the place on the table, never the hidden property.

All that a camera shows is off by what its calibration is wrong. Where that was measured
(`camera_correction`), it is taken out of every place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from equi_console.scene.camera_correction import CellCorrection
from equi_core.contract import ImageSpec
from equi_core.files.scene_layout import LayoutObject, SceneLayout
from equi_core.observation.image import finger_mask, pixel_centres_m

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

MOST_ERROR_M = 0.005
MOST_ERROR_RAD = math.radians(6.0)
_SEARCH_M = 0.07
"""A block further from its place is not taken for it [m]."""
_LEAST_SHARE = 0.25
"""Of a block's pixels that must be seen."""
_EDGE_M = 0.003
"""Softness of the fitted outline: a pixel's own size."""
_START_ANGLES = 4
_START_WIDER_M = 0.001
_FIRST_STEPS = (0.005, 0.005, 0.2, 0.002, 0.002)
"""Of the search: x, y [m], yaw [rad], and by how much the outline is wider on either side [m]."""
_RAISED_SHARE = 0.85
"""Of a block's height; lower pixels are its sides, which a camera sees slantwise."""
_SAME_PLACE_M = 0.0005


@dataclass(frozen=True)
class TableView:
    """The height map around the gripper, as an observation brings it."""

    heights_m: FloatArray
    """(S, S) above the table [m]."""
    known: BoolArray
    """(S, S): not hidden by the fingers."""
    centre_m: tuple[float, float]
    """Where its middle is in the task frame [m]."""
    spec: ImageSpec

    @classmethod
    def of_observation(
        cls,
        image: NDArray[np.float32],
        tcp_m: tuple[float, float, float],
        gripper: tuple[float, float],
        spec: ImageSpec,
    ) -> TableView:
        """From an observation (2, S, S), the TCP [m], and yaw [rad] and opening of the gripper."""
        heights = tcp_m[2] + spec.camera_above_tcp_m - image[0].astype(np.float64)
        fingers = finger_mask(*gripper, spec)
        # The pixels beside the fingers are drawn over, too, where the two edges meet.
        grown = fingers.copy()
        for axis in (0, 1):
            for shift in (-1, 1):
                grown |= np.roll(fingers, shift, axis=axis)
        return cls(heights, ~grown, (tcp_m[0], tcp_m[1]), spec)

    @classmethod
    def merged(cls, views: Sequence[TableView]) -> TableView:
        """The median of several views from one place: the noise of single frames goes."""
        newest = views[-1]
        same = [view for view in views if view.is_beside(newest)]
        heights = np.median([view.heights_m for view in same], axis=0)
        return cls(heights, newest.known, newest.centre_m, newest.spec)

    def is_beside(self, other: TableView) -> bool:
        """Whether both were taken with the gripper at the same place."""
        apart_m = math.dist(self.centre_m, other.centre_m)
        return apart_m < _SAME_PLACE_M and bool(np.array_equal(self.known, other.known))


@dataclass(frozen=True)
class Placed:
    """One object of the layout, and what was found of it."""

    name: str
    """A, B, ...: by their place, so that the name says nothing of the hidden property."""
    wanted_m: tuple[float, float]
    found_m: tuple[float, float] | None
    """Where it stands in the task frame [m]; None: nothing was found there."""
    error_rad: float = 0.0
    """How far it is turned, up to a quarter turn [rad]."""
    in_view: bool = True
    """Whether the place, and what was found there, is wholly in the picture."""

    @property
    def error_m(self) -> float:
        """How far it stands from its place [m]; infinite if it was not found."""
        if self.found_m is None:
            return math.inf
        return math.dist(self.wanted_m, self.found_m)

    @property
    def is_right(self) -> bool:
        """Whether it stands near enough to its place."""
        return self.error_m <= MOST_ERROR_M and abs(self.error_rad) <= MOST_ERROR_RAD

    def __str__(self) -> str:
        if not self.in_view:
            return f"{self.name}: not wholly in the picture, which is around the gripper: go home"
        if self.found_m is None:
            x, y = (1e3 * value for value in self.wanted_m)
            return f"{self.name}: nothing found near x {x:.0f}, y {y:.0f} mm"
        dx, dy = (1e3 * (b - a) for a, b in zip(self.found_m, self.wanted_m, strict=True))
        turn = -math.degrees(self.error_rad)
        verdict = "right" if self.is_right else "move it"
        return f"{self.name}: {verdict} (by {dx:+.1f}, {dy:+.1f} mm, turn {turn:+.0f} deg)"


@dataclass(frozen=True)
class Placement:
    """What the check says of a scene."""

    seed: int
    objects: tuple[Placed, ...]
    cameras: str = ""
    """What was taken out of the places, or why nothing was; empty: it was not looked at."""

    @property
    def ready(self) -> bool:
        """Whether the episode may begin."""
        return bool(self.objects) and all(item.is_right for item in self.objects)

    def __str__(self) -> str:
        words = "; ".join(str(item) for item in self.objects)
        verdict = f"scene {self.seed}: {'READY' if self.ready else 'not ready'}: {words}"
        return f"{verdict}. {self.cameras}" if self.cameras else verdict


def check_placement(
    layout: SceneLayout, view: TableView, correction: CellCorrection | str = ""
) -> Placement:
    """Find every object of a layout in the height map.

    Only blocks are measured; a scene with something else is never ready by this check.

    Args:
        layout: where they should stand.
        view: the height map.
        correction: by how much the cameras are off, or why that is not known.
    """
    known = None if isinstance(correction, str) else correction
    ordered = by_place(layout.objects)
    placed = tuple(_placed(name, item, view, known) for name, item in ordered)
    return Placement(layout.seed, placed, str(correction))


def by_place(objects: Sequence[LayoutObject]) -> list[tuple[str, LayoutObject]]:
    """Names by the place on the table: A is nearest to the robot."""
    ordered = sorted(objects, key=lambda item: (round(item.x_m, 4), round(item.y_m, 4)))
    return [(chr(ord("A") + index), item) for index, item in enumerate(ordered)]


def sealed_words(layout: SceneLayout) -> str:
    """What only the assistant may know: which of the objects is the movable one."""
    lines = [
        f"{name} (x {1e3 * item.x_m:.0f}, y {1e3 * item.y_m:.0f} mm): "
        f"{'MOVABLE' if item.movable else 'FIXED to the table'}"
        for name, item in by_place(layout.objects)
    ]
    return f"scene {layout.seed}, for the assistant only\n" + "\n".join(lines) + "\n"


def _placed(
    name: str, item: LayoutObject, view: TableView, correction: CellCorrection | None
) -> Placed:
    wanted = (item.x_m, item.y_m)
    if item.kind != "block":
        return Placed(name, wanted, None)
    if not _is_in_view((*wanted, item.yaw_rad), item, view):
        return Placed(name, wanted, None, in_view=False)
    centres = pixel_centres_m(view.spec)
    x = view.centre_m[0] + centres[:, None] + np.zeros_like(centres)[None, :]
    y = view.centre_m[1] + centres[None, :] + np.zeros_like(centres)[:, None]
    near = np.hypot(x - item.x_m, y - item.y_m) < _SEARCH_M
    raised = near & view.known & (view.heights_m > _RAISED_SHARE * item.size_m[2])
    expected = item.size_m[0] * item.size_m[1] / view.spec.pixel_m**2
    if raised.sum() < _LEAST_SHARE * expected:
        return Placed(name, wanted, None)
    used = near & view.known
    points = (x[used], y[used], raised[used].astype(np.float64))
    start = (float(x[raised].mean()), float(y[raised].mean()))
    x_m, y_m, yaw_rad = _fit(points, start, item)
    if not _is_in_view((x_m, y_m, yaw_rad), item, view):
        return Placed(name, wanted, None, in_view=False)  # an outline that is cut may slide
    if correction is not None:
        dx_m, dy_m = correction.error_at(x_m, y_m, item.size_m[2])
        x_m, y_m = x_m - dx_m, y_m - dy_m
    # A square is the same after a quarter turn.
    error = (yaw_rad - item.yaw_rad + math.pi / 4) % (math.pi / 2) - math.pi / 4
    return Placed(name, wanted, (x_m, y_m), error)


def _is_in_view(pose: tuple[float, float, float], item: LayoutObject, view: TableView) -> bool:
    """Whether an outline at x, y [m] and yaw [rad] lies within the picture."""
    c, s = abs(math.cos(pose[2])), abs(math.sin(pose[2]))
    half_x, half_y = item.size_m[0] / 2, item.size_m[1] / 2
    reach_x, reach_y = c * half_x + s * half_y, s * half_x + c * half_y
    away_x, away_y = (abs(pose[axis] - view.centre_m[axis]) for axis in (0, 1))
    return max(away_x + reach_x, away_y + reach_y) <= view.spec.view_m / 2


def _fit(
    points: tuple[FloatArray, FloatArray, FloatArray],
    start_m: tuple[float, float],
    item: LayoutObject,
) -> tuple[float, float, float]:
    """Centre and yaw of the outline that covers the raised pixels best."""
    x, y, raised = points
    half = (item.size_m[0] / 2, item.size_m[1] / 2)

    def misfit(shape: FloatArray) -> float:
        dx, dy = x - shape[0], y - shape[1]
        c, s = math.cos(shape[2]), math.sin(shape[2])
        outside = np.maximum(
            np.abs(c * dx + s * dy) - half[0] - shape[3],
            np.abs(c * dy - s * dx) - half[1] - shape[4],
        )
        covered = 1.0 / (1.0 + np.exp(np.clip(outside / _EDGE_M, -50.0, 50.0)))
        return float(np.sum((covered - raised) ** 2))

    best = None
    for index in range(_START_ANGLES):
        angle = item.yaw_rad + index * math.pi / 2 / _START_ANGLES
        start = np.array([*start_m, angle, _START_WIDER_M, _START_WIDER_M])
        simplex = np.vstack([start, start + np.diag(_FIRST_STEPS)])
        found = minimize(
            misfit,
            start,
            method="Nelder-Mead",
            options={"initial_simplex": simplex, "xatol": 1e-4, "fatol": 1e-3, "maxiter": 400},
        )
        if best is None or found.fun < best.fun:
            best = found
    x_m, y_m, yaw = (float(value) for value in best.x[:3])  # type: ignore[union-attr]
    return x_m, y_m, yaw
