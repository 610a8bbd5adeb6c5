# SPDX-License-Identifier: MIT
"""The eye-to-hand problem: which camera saw which corners at which robot pose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.board import BoardSpec
from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.errors import ParallelAxesError, TooFewPosesError
from equi_core.geometry import matrix_to_rotvec

FloatArray = NDArray[np.float64]

FEWEST_POSES = 8
"""Below, the residuals say little about the answer's error."""
_FEWEST_VIEWS_PER_CAMERA = 6
_SMALLEST_SECOND_AXIS_DEG = 10.0


@dataclass(frozen=True, eq=False)
class View:
    """Corners that one camera saw at one pose."""

    camera: str
    pose_index: int
    """Row of `HandEyeProblem.base_from_tcp`."""
    corner_ids: NDArray[np.int64]
    """(N,)"""
    corners_px: FloatArray
    """(N, 2)"""
    camera_from_board: FloatArray
    """(4, 4) pose estimated from this view alone."""
    image: str = ""
    """Where the view came from, for messages."""


@dataclass(frozen=True, eq=False)
class HandEyeProblem:
    """Everything that one solution is computed from."""

    board: BoardSpec
    intrinsics: Mapping[str, Intrinsics]
    base_from_tcp: FloatArray
    """(P, 4, 4) tool poses as the robot reported them, in base_link."""
    views: tuple[View, ...]

    @property
    def cameras(self) -> tuple[str, ...]:
        """Camera names in a fixed order."""
        return tuple(sorted(self.intrinsics))

    @property
    def used_poses(self) -> tuple[int, ...]:
        """Poses that at least one camera has a view of."""
        return tuple(sorted({view.pose_index for view in self.views}))

    def views_of(self, camera: str) -> tuple[View, ...]:
        """The views of one camera."""
        return tuple(view for view in self.views if view.camera == camera)

    def without_poses(self, poses: set[int]) -> HandEyeProblem:
        """The same problem without some poses' views."""
        return replace(
            self, views=tuple(view for view in self.views if view.pose_index not in poses)
        )

    def only_poses(self, poses: set[int]) -> HandEyeProblem:
        """The same problem with some poses' views alone."""
        return replace(self, views=tuple(view for view in self.views if view.pose_index in poses))

    def require_solvable(self) -> None:
        """Raise unless poses, views and rotation axes suffice for every camera."""
        if len(self.used_poses) < FEWEST_POSES:
            raise TooFewPosesError(
                f"only {len(self.used_poses)} usable poses, at least {FEWEST_POSES} are needed and "
                "20 to 30 recommended; collect more, and read the reasons for rejected views"
            )
        for camera in self.cameras:
            views = self.views_of(camera)
            if len(views) < _FEWEST_VIEWS_PER_CAMERA:
                raise TooFewPosesError(
                    f"camera '{camera}' has {len(views)} usable views, at least "
                    f"{_FEWEST_VIEWS_PER_CAMERA} are needed; show it the board at more poses"
                )
            spread = second_axis_deg(self.base_from_tcp[[view.pose_index for view in views]])
            if spread < _SMALLEST_SECOND_AXIS_DEG:
                raise ParallelAxesError(
                    f"seen from camera '{camera}' the tool rotates about one axis only (spread "
                    f"about a second axis is {spread:.1f} deg, at least "
                    f"{_SMALLEST_SECOND_AXIS_DEG:.0f} deg needed), so the board's pose in the "
                    "gripper and the camera's height cannot be told apart; tilt the tool about at "
                    "least two axes"
                )


def second_axis_deg(base_from_tcp: FloatArray) -> float:
    """How far the tool rotated about a second axis: RMS rotation off the main axis [deg].

    Singular values of the rotation vectors relative to the mean orientation: the first is the
    rotation about the main axis, the second what is left about any other.
    """
    rotations = base_from_tcp[:, :3, :3]
    u, _, vt = np.linalg.svd(rotations.mean(axis=0))
    mean = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    rotvecs = matrix_to_rotvec(rotations @ mean.T)
    singular = np.linalg.svd(rotvecs, compute_uv=False) / np.sqrt(len(rotvecs))
    return float(np.degrees(singular[1]))
