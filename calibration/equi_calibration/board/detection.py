# SPDX-License-Identifier: MIT
"""Find the board in an image, and check whether the view is good enough to calibrate with.

A view is refused, with a reason a person can act on, when the board is missing, partly hidden,
blurred (the arm still moved, the lens is out of focus) or seen too obliquely.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.board import BoardSpec
from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.errors import BoardError
from equi_core.geometry import pose_matrix, rotvec_to_matrix

FloatArray = NDArray[np.float64]

_FEWEST_CORNERS_FOR_A_POSE = 6
# Corners nearer to the image border than this were refined with half a window.
_BORDER_PX = 6.0
_STRAY_PX = 0.35
_STRAY_FACTOR = 3.5
# Below this width a marker's cells come out at two or three pixels and are read too rarely.
_WIDTH_TO_DECODE_PX = 1000


@dataclass(frozen=True)
class ViewGate:
    """When a view counts as good."""

    min_corner_fraction: float = 0.5
    """Share of the board's corners that must be seen."""
    max_edge_width_px: float = 3.2
    """Widest dark-to-bright transition of the print; a sharp image has about 2."""
    max_tilt_deg: float = 55.0
    """Angle between the board's normal and the line of sight."""
    min_square_px: float = 12.0
    """Shortest distance between neighbouring corners; below, markers are not decoded reliably."""
    max_view_rms_px: float = 0.8
    """Reprojection error of this view alone: above, corners are wrong or the board is bent."""


@dataclass(frozen=True, eq=False)
class Detection:
    """What was found in one image."""

    corner_ids: NDArray[np.int64]
    """(N,) ids of the corners found."""
    corners_px: FloatArray
    """(N, 2) their pixels."""
    camera_from_board: FloatArray | None = None
    """(4, 4) pose from this view alone; None if it could not be estimated."""
    rms_px: float = float("nan")
    """Reprojection error of that pose."""
    tilt_deg: float = float("nan")
    edge_width_px: float = float("nan")
    rejections: tuple[str, ...] = field(default_factory=tuple)
    """Why the view is not good, one sentence each; empty if it is."""

    @property
    def accepted(self) -> bool:
        """Whether the view may be used."""
        return not self.rejections


class BoardDetector:
    """Detects one kind of board; reusable over images and cameras."""

    def __init__(self, board: BoardSpec, gate: ViewGate | None = None) -> None:
        self.board = board
        self.gate = gate or ViewGate()
        self._parameters = cv2.aruco.DetectorParameters()
        self._parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_SUBPIX
        self._opencv_board = board.opencv()
        self._corners_m = board.corners_m()

    def detect(self, image: NDArray[np.uint8], intrinsics: Intrinsics) -> Detection:
        """Find the board in a grey (H, W) or BGR (H, W, 3) image."""
        if image.dtype != np.uint8:
            raise BoardError(f"image has type {image.dtype}; detection needs 8-bit grey or BGR")
        grey = image
        if image.ndim == 3:
            grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), dtype=np.uint8)
        flat_ids, pixels = self._find(grey, intrinsics)
        if len(flat_ids) == 0:
            return _nothing("no board found: is it in view, lit, and the board of the cell file?")
        inside = np.all(
            (pixels > _BORDER_PX)
            & (pixels < np.array([grey.shape[1], grey.shape[0]]) - 1 - _BORDER_PX),
            axis=1,
        )
        flat_ids, pixels = flat_ids[inside], self._refined(grey, flat_ids[inside], pixels[inside])
        if len(flat_ids) < _FEWEST_CORNERS_FOR_A_POSE:
            return Detection(
                flat_ids,
                pixels,
                rejections=(
                    f"partial: only {len(flat_ids)} of {self.board.corner_count} corners seen",
                ),
            )
        return self._evaluate(grey, flat_ids, pixels, intrinsics)

    def _find(
        self, grey: NDArray[np.uint8], intrinsics: Intrinsics
    ) -> tuple[NDArray[np.int64], FloatArray]:
        """Ids and rough pixels of the corners; small images are enlarged to decode the markers."""
        zoom = 2 if grey.shape[1] < _WIDTH_TO_DECODE_PX else 1
        large = cv2.resize(grey, None, fx=zoom, fy=zoom, interpolation=cv2.INTER_CUBIC)
        charuco = cv2.aruco.CharucoParameters()
        matrix = intrinsics.matrix * zoom
        matrix[:2, 2] += (zoom - 1) / 2
        matrix[2, 2] = 1.0
        # With intrinsics, one decoded marker next to a corner is enough to find it.
        charuco.cameraMatrix, charuco.distCoeffs = matrix, intrinsics.distortion_array
        charuco.minMarkers = 1
        detector = cv2.aruco.CharucoDetector(self._opencv_board, charuco, self._parameters)
        corners, ids, _, _ = detector.detectBoard(large)
        if ids is None or len(ids) == 0:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 2))
        pixels = (corners.reshape(-1, 2).astype(np.float64) - (zoom - 1) / 2) / zoom
        return ids.ravel().astype(np.int64), pixels

    def _refined(
        self, grey: NDArray[np.uint8], ids: NDArray[np.int64], pixels: FloatArray
    ) -> FloatArray:
        """Corners refined once more, in the pixel convention of the projection.

        CharucoDetector up to OpenCV 4.12 adds half a pixel to what it refined (opencv#25539), which
        would shift a camera by about half a millimetre without any trace in the residuals.
        """
        if len(ids) == 0:
            return pixels
        # The window must not reach over the white frame into the next marker.
        frame = (1.0 - self.board.marker_m / self.board.square_m) / 2
        spacing_px = _shortest_spacing_px(ids, pixels, self.board)
        window = round(float(np.clip(min(frame, 0.2) * spacing_px, 2, 8)))
        stop = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 50, 1e-4)
        start = pixels.astype(np.float32).reshape(-1, 1, 2)
        refined = cv2.cornerSubPix(grey, start, (window, window), (-1, -1), stop)
        return refined.reshape(-1, 2).astype(np.float64)

    def _without_strays(
        self,
        ids: NDArray[np.int64],
        pixels: FloatArray,
        pose: FloatArray,
        rms: float,
        intrinsics: Intrinsics,
    ) -> tuple[NDArray[np.int64], FloatArray, FloatArray, float]:
        """Leave out single corners that do not fit the board which the others form.

        In an oblique view the refinement of a corner sometimes slides along an edge.
        """
        projected = intrinsics.project(self._corners_m[ids] @ pose[:3, :3].T + pose[:3, 3])
        errors = np.linalg.norm(projected - pixels, axis=1)
        good = errors < max(_STRAY_PX, _STRAY_FACTOR * float(np.median(errors)))
        kept = ids[good]
        points = self._corners_m[kept]
        if good.all() or len(kept) < max(_FEWEST_CORNERS_FOR_A_POSE, 0.7 * len(ids)):
            return ids, pixels, pose, rms
        if np.linalg.matrix_rank(points - points[0], tol=1e-6) < 2:
            return ids, pixels, pose, rms
        return (kept, pixels[good], *board_pose(points, pixels[good], intrinsics))

    def _evaluate(
        self,
        grey: NDArray[np.uint8],
        ids: NDArray[np.int64],
        pixels: FloatArray,
        intrinsics: Intrinsics,
    ) -> Detection:
        points = self._corners_m[ids]
        if np.linalg.matrix_rank(points - points[0], tol=1e-6) < 2:
            return Detection(ids, pixels, rejections=("partial: only one row of corners seen",))
        try:
            pose, rms = board_pose(points, pixels, intrinsics)
            ids, pixels, pose, rms = self._without_strays(ids, pixels, pose, rms, intrinsics)
        except BoardError as error:
            return Detection(ids, pixels, rejections=(f"inconsistent: {error}",))
        centre = (pose @ np.append(self.board.centre_m, 1.0))[:3]
        cosine = abs(float(pose[:3, 2] @ centre) / float(np.linalg.norm(centre)))
        tilt_deg = float(np.degrees(np.arccos(np.clip(cosine, 0.0, 1.0))))
        edge_px = edge_width_px(grey, ids, pixels, self.board)
        gate, reasons = self.gate, []
        fraction = len(ids) / self.board.corner_count
        if fraction < gate.min_corner_fraction:
            reasons.append(
                f"partial: {len(ids)} of {self.board.corner_count} corners seen, at least "
                f"{gate.min_corner_fraction:.0%} wanted"
            )
        if edge_px > gate.max_edge_width_px:
            reasons.append(
                f"blurred: edges are {edge_px:.1f} px wide, at most {gate.max_edge_width_px:.1f}; "
                "let the arm settle, or shorten the exposure"
            )
        if tilt_deg > gate.max_tilt_deg:
            reasons.append(
                f"oblique: seen at {tilt_deg:.0f} deg, at most {gate.max_tilt_deg:.0f}; "
                "rotate the board towards the camera"
            )
        spacing = _shortest_spacing_px(ids, pixels, self.board)
        if spacing < gate.min_square_px:
            reasons.append(
                f"far: squares are {spacing:.0f} px, at least {gate.min_square_px:.0f} wanted; "
                "bring the board nearer"
            )
        if rms > gate.max_view_rms_px:
            reasons.append(
                f"inconsistent: corners miss a flat board by {rms:.2f} px, at most "
                f"{gate.max_view_rms_px:.2f}; check intrinsics and that the board is flat"
            )
        return Detection(ids, pixels, pose, rms, tilt_deg, edge_px, tuple(reasons))


def board_pose(
    points_board_m: FloatArray, pixels: FloatArray, intrinsics: Intrinsics
) -> tuple[FloatArray, float]:
    """`camera_from_board` (4, 4) from one view, and its reprojection RMS per coordinate [px]."""
    matrix, distortion = intrinsics.matrix, intrinsics.distortion_array
    count, rotations, translations, _ = cv2.solvePnPGeneric(
        points_board_m, pixels, matrix, distortion, flags=cv2.SOLVEPNP_IPPE
    )
    best, best_rms = np.eye(4), np.inf
    # A plane has two candidate poses; the one that fits better after refinement is kept.
    for rotation, translation in zip(rotations, translations, strict=True):
        rotvec, position = cv2.solvePnPRefineLM(
            points_board_m, pixels, matrix, distortion, rotation.copy(), translation.copy()
        )
        projected, _ = cv2.projectPoints(points_board_m, rotvec, position, matrix, distortion)
        rms = float(np.sqrt(np.mean((projected.reshape(-1, 2) - pixels) ** 2)))
        if rms < best_rms and float(position.ravel()[2]) > 0.0:
            best = pose_matrix(position.ravel(), rotvec_to_matrix(rotvec.ravel()))
            best_rms = rms
    if count == 0 or not np.isfinite(best_rms):
        raise BoardError("no pose fits the corners; are they those of one flat board?")
    return best, best_rms


def edge_width_px(
    grey: NDArray[np.uint8], ids: NDArray[np.int64], pixels: FloatArray, board: BoardSpec
) -> float:
    """Median width of dark-to-bright transitions half-way between neighbouring corners [px].

    Width = contrast / steepest slope across the edge: independent of lighting and distance.
    """
    index_of = {int(corner): index for index, corner in enumerate(ids)}
    stride = board.columns - 1
    widths = []
    for corner, index in index_of.items():
        for other in (corner + 1, corner + stride):
            if other not in index_of or (other == corner + 1 and other % stride == 0):
                continue
            start, end = pixels[index], pixels[index_of[other]]
            along = end - start
            length = float(np.linalg.norm(along))
            if length < 6.0:
                continue
            across = np.array([-along[1], along[0]]) / length
            # Beyond a quarter of the square's white frame the next marker would be sampled.
            reach = min(5.0, max(2.0, 0.2 * length))
            offsets = np.linspace(-reach, reach, 41)
            samples = (start + end) / 2 + offsets[:, None] * across
            profile = cv2.remap(
                grey,
                samples[None, :, 0].astype(np.float32),
                samples[None, :, 1].astype(np.float32),
                cv2.INTER_LINEAR,
            ).ravel()
            slope = np.abs(np.diff(profile.astype(np.float64))).max() / (offsets[1] - offsets[0])
            contrast = float(profile.max()) - float(profile.min())
            if contrast > 20.0:
                widths.append(contrast / slope)
    return float(np.median(widths)) if widths else float("inf")


def _shortest_spacing_px(ids: NDArray[np.int64], pixels: FloatArray, board: BoardSpec) -> float:
    index_of = {int(corner): index for index, corner in enumerate(ids)}
    stride = board.columns - 1
    spacings = [
        float(np.linalg.norm(pixels[index_of[other]] - pixels[index]))
        for corner, index in index_of.items()
        for other in (corner + 1, corner + stride)
        if other in index_of and not (other == corner + 1 and other % stride == 0)
    ]
    return min(spacings, default=float("inf"))


def _nothing(reason: str) -> Detection:
    return Detection(np.zeros(0, dtype=np.int64), np.zeros((0, 2)), rejections=(reason,))
