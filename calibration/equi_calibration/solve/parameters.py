# SPDX-License-Identifier: MIT
"""Measurement model of the bundle adjustment: parameters, prediction and its exact derivative.

p = camera_from_base * base_from_tcp * exp(correction) * tcp_from_board * (scale * corner), then the
lens. Poses move by a step on their right side: T -> T [Exp(w), v] with step (v, w) [m, rad].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.errors import SolveError
from equi_calibration.solve.hand_eye import Estimate
from equi_calibration.solve.problem import HandEyeProblem
from equi_core.geometry import invert, pose_matrix, rotvec_to_matrix

FloatArray = NDArray[np.float64]

_POSE_SCALES = np.array([1e-3] * 3 + [1e-3] * 3)


@dataclass(frozen=True, eq=False)
class Parameters:
    """Current values of all parameters, and where each lies in the step vector."""

    cameras: tuple[str, ...]
    pose_indices: tuple[int, ...]
    camera_from_base: Mapping[str, FloatArray]
    tcp_from_board: FloatArray
    corrections: FloatArray
    """(P, 6) position and rotation vector of each robot pose's correction, in the TCP frame."""
    intrinsics: Mapping[str, Intrinsics]
    given_intrinsics: Mapping[str, Intrinsics]
    scale: float
    refine_intrinsics: bool
    estimate_scale: bool

    @classmethod
    def of(
        cls, problem: HandEyeProblem, start: Estimate, refine_intrinsics: bool, estimate_scale: bool
    ) -> Parameters:
        """Start values for a problem."""
        return cls(
            problem.cameras,
            problem.used_poses,
            {name: invert(start.base_from_camera[name]) for name in problem.cameras},
            start.tcp_from_board,
            np.zeros((len(problem.used_poses), 6)),
            dict(problem.intrinsics),
            dict(problem.intrinsics),
            1.0,
            refine_intrinsics,
            estimate_scale,
        )

    @property
    def size(self) -> int:
        """Number of parameters."""
        shared = 6 * len(self.cameras) + 6 + int(self.estimate_scale)
        lens = 4 * len(self.cameras) if self.refine_intrinsics else 0
        return shared + lens + 6 * len(self.pose_indices)

    def camera_slice(self, camera: str) -> slice:
        """Where a camera's pose step lies."""
        start = 6 * self.cameras.index(camera)
        return slice(start, start + 6)

    @property
    def board_slice(self) -> slice:
        """Where the board-in-hand step lies."""
        start = 6 * len(self.cameras)
        return slice(start, start + 6)

    @property
    def scale_index(self) -> int:
        """Where the board's scale lies; only meaningful if it is estimated."""
        return 6 * len(self.cameras) + 6

    def lens_slice(self, camera: str) -> slice:
        """Where fx, fy, cx, cy of a camera lie; only meaningful if they are refined."""
        start = self.scale_index + int(self.estimate_scale) + 4 * self.cameras.index(camera)
        return slice(start, start + 4)

    def pose_slice(self, position: int) -> slice:
        """Where the correction of the position-th pose lies."""
        start = self.size - 6 * len(self.pose_indices) + 6 * position
        return slice(start, start + 6)

    def scales(self) -> FloatArray:
        """Typical size of each parameter's step (size,)."""
        scales = np.full(self.size, 1e-3)
        if self.estimate_scale:
            scales[self.scale_index] = 1e-3
        if self.refine_intrinsics:
            for camera in self.cameras:
                scales[self.lens_slice(camera)] = 1.0
        return scales

    def moved(self, step: FloatArray) -> Parameters:
        """The parameters after a step (size,)."""
        intrinsics = dict(self.intrinsics)
        if self.refine_intrinsics:
            for camera in self.cameras:
                fx, fy, cx, cy = step[self.lens_slice(camera)]
                old = self.intrinsics[camera]
                intrinsics[camera] = replace(
                    old,
                    fx_px=old.fx_px + fx,
                    fy_px=old.fy_px + fy,
                    cx_px=old.cx_px + cx,
                    cy_px=old.cy_px + cy,
                )
        tail = step[self.size - 6 * len(self.pose_indices) :].reshape(-1, 6)
        return replace(
            self,
            camera_from_base={
                name: _retract(pose, step[self.camera_slice(name)])
                for name, pose in self.camera_from_base.items()
            },
            tcp_from_board=_retract(self.tcp_from_board, step[self.board_slice]),
            corrections=self.corrections + tail,
            intrinsics=intrinsics,
            scale=self.scale + (float(step[self.scale_index]) if self.estimate_scale else 0.0),
        )

    def restricted_to(self, problem: HandEyeProblem) -> Parameters:
        """The parameters for a problem with some poses removed."""
        rows = [self.pose_indices.index(pose) for pose in problem.used_poses]
        return replace(self, pose_indices=problem.used_poses, corrections=self.corrections[rows])

    def without_corrections(self) -> Parameters:
        """The parameters with the robot taken at its word."""
        return replace(self, corrections=np.zeros_like(self.corrections))

    def estimate(self) -> Estimate:
        """Cameras and board as transforms."""
        return Estimate(
            {name: invert(pose) for name, pose in self.camera_from_base.items()},
            self.tcp_from_board,
        )

    def priors(
        self,
        position_sigma_m: float,
        rotation_sigma: float,
        focal_sigma: float,
        centre_sigma: float,
    ) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
        """Value, derivative and standard deviation of what is known beforehand."""
        count = len(self.pose_indices)
        jacobian = np.zeros((6 * count, self.size))
        jacobian[:, self.size - 6 * count :] = np.eye(6 * count)
        sigma = np.tile([position_sigma_m] * 3 + [rotation_sigma] * 3, count)
        yield self.corrections.ravel(), jacobian, sigma
        if not self.refine_intrinsics:
            return
        for camera in self.cameras:
            now, given = self.intrinsics[camera], self.given_intrinsics[camera]
            offset = np.array(
                [
                    now.fx_px - given.fx_px,
                    now.fy_px - given.fy_px,
                    now.cx_px - given.cx_px,
                    now.cy_px - given.cy_px,
                ]
            )
            jacobian = np.zeros((4, self.size))
            jacobian[:, self.lens_slice(camera)] = np.eye(4)
            focal = focal_sigma * given.fx_px
            yield offset, jacobian, np.array([focal, focal, centre_sigma, centre_sigma])

    def camera_covariance(
        self, covariance: FloatArray, camera: str, reference_m: FloatArray
    ) -> FloatArray:
        """(6, 6) of base_from_camera's error, seen at a point of base_link, in its axes.

        A step (v, w) of camera_from_base moves what the camera sees at point q of base_link by
        -(v + w x q) and rotates it by -w.
        """
        part = self.camera_slice(camera)
        transfer = np.zeros((6, 6))
        transfer[:3, :3] = -np.eye(3)
        transfer[:3, 3:] = skew(reference_m)
        transfer[3:, 3:] = -np.eye(3)
        return transfer @ covariance[part, part] @ transfer.T

    def scale_sigma(self, covariance: FloatArray) -> float:
        """Standard deviation of the board's scale; 0 if it was not estimated."""
        if not self.estimate_scale:
            return 0.0
        return float(np.sqrt(covariance[self.scale_index, self.scale_index]))


def linearise(problem: HandEyeProblem, parameters: Parameters) -> tuple[FloatArray, FloatArray]:
    """Pixel residuals (2 N,), predicted minus seen, and their derivative (2 N, size)."""
    corners = problem.board.corners_m()
    row_of = {pose: index for index, pose in enumerate(parameters.pose_indices)}
    residuals, jacobians = [], []
    for view in problem.views:
        position = row_of[view.pose_index]
        correction = parameters.corrections[position]
        correction_rotation = rotvec_to_matrix(correction[3:])
        camera_from_base = parameters.camera_from_base[view.camera]
        base_from_tcp = problem.base_from_tcp[view.pose_index]
        on_print = parameters.scale * corners[view.corner_ids]
        board_rotation = parameters.tcp_from_board[:3, :3]
        in_tcp = on_print @ board_rotation.T + parameters.tcp_from_board[:3, 3]
        in_true_tcp = in_tcp @ correction_rotation.T + correction[:3]
        in_base = in_true_tcp @ base_from_tcp[:3, :3].T + base_from_tcp[:3, 3]
        in_camera = in_base @ camera_from_base[:3, :3].T + camera_from_base[:3, 3]
        if np.any(in_camera[:, 2] <= 1e-3):
            raise SolveError(
                f"camera '{view.camera}' would have the board behind it at pose "
                f"{view.pose_index}; the start is too far off or poses and images do not match"
            )
        lens = parameters.intrinsics[view.camera]
        pixels, by_point, by_lens = _project(lens, in_camera)
        residuals.append((pixels - view.corners_px).ravel())

        jacobian = np.zeros((2 * len(pixels), parameters.size))
        camera_rotation = camera_from_base[:3, :3]
        tcp_rotation = camera_rotation @ base_from_tcp[:3, :3]
        full_rotation = tcp_rotation @ correction_rotation @ board_rotation

        def fill(
            columns: slice,
            rotation: FloatArray,
            points: FloatArray,
            rows: FloatArray = by_point,
            out: FloatArray = jacobian,
        ) -> None:
            by_position = rows @ rotation
            by_rotation = -by_position @ skew(points)
            out[:, columns] = np.concatenate([by_position, by_rotation], axis=2).reshape(-1, 6)

        fill(parameters.camera_slice(view.camera), camera_rotation, in_base)
        fill(parameters.board_slice, full_rotation, on_print)
        columns = parameters.pose_slice(position)
        by_position = by_point @ tcp_rotation
        by_rotation = (
            -(by_position @ correction_rotation) @ skew(in_tcp) @ right_jacobian(correction[3:])
        )
        jacobian[:, columns] = np.concatenate([by_position, by_rotation], axis=2).reshape(-1, 6)
        if parameters.estimate_scale:
            direction = corners[view.corner_ids] @ full_rotation.T
            jacobian[:, parameters.scale_index] = (by_point @ direction[:, :, None]).ravel()
        if parameters.refine_intrinsics:
            jacobian[:, parameters.lens_slice(view.camera)] = by_lens.reshape(-1, 4)
        jacobians.append(jacobian)
    return np.concatenate(residuals), np.concatenate(jacobians)


def skew(vectors: FloatArray) -> FloatArray:
    """Matrices (..., 3, 3) of vectors (..., 3) whose product with b is the cross product with b."""
    matrix = np.zeros((*vectors.shape[:-1], 3, 3))
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    matrix[..., 0, 1], matrix[..., 0, 2], matrix[..., 1, 2] = -z, y, -x
    matrix[..., 1, 0], matrix[..., 2, 0], matrix[..., 2, 1] = z, -y, x
    return matrix


def right_jacobian(rotvec: FloatArray) -> FloatArray:
    """Matrix J (3, 3) of a rotation vector w: turning by w + dw is turning by w, then by J dw."""
    angle = float(np.linalg.norm(rotvec))
    cross = skew(rotvec)
    if angle < 1e-6:
        return np.eye(3) - 0.5 * cross
    return (
        np.eye(3)
        - (1.0 - np.cos(angle)) / angle**2 * cross
        + (angle - np.sin(angle)) / angle**3 * cross @ cross
    )


def _retract(pose: FloatArray, step: FloatArray) -> FloatArray:
    return pose @ pose_matrix(step[:3], rotvec_to_matrix(step[3:]))


def _project(lens: Intrinsics, points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Pixels (N, 2), derivative by the point (N, 2, 3) and by fx, fy, cx, cy (N, 2, 4)."""
    pixels, jacobian = cv2.projectPoints(
        points.reshape(-1, 1, 3), np.zeros(3), np.zeros(3), lens.matrix, lens.distortion_array
    )
    # Columns: rotation, translation, fx, fy, cx, cy, distortion. At zero pose the derivative by
    # the translation is the one by the point itself.
    derivative = np.asarray(jacobian, dtype=np.float64)
    by_point = derivative[:, 3:6].reshape(-1, 2, 3)
    by_lens = derivative[:, 6:10].reshape(-1, 2, 4)
    return np.asarray(pixels, dtype=np.float64).reshape(-1, 2), by_point, by_lens
