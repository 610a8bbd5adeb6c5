# SPDX-License-Identifier: MIT
"""Clearance pose: where the arm occludes least of the table while the clouds are taken."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from equi_calibration.cell_file import CellSettings
from equi_calibration.collect.poses import (
    joints_are_clear,
    path_is_clear,
    reachable_joints,
)
from equi_calibration.errors import CollectError
from equi_core.geometry import top_down_pose, transform_points
from equi_core.motion import ur5_kinematics

FloatArray = NDArray[np.float64]

_ARM_RADIUS_M = 0.08
_SAMPLE_M = 0.04
_GRID = 7
_YAWS_RAD = tuple(np.radians([-90.0, -45.0, 0.0, 45.0, 90.0]))


def clearance_joints(cell: CellSettings) -> FloatArray:
    """Joints (6,) inside the cell's boxes, with a clear path from the ready posture.

    Raises:
        CollectError: no pose with the tool pointing down fits into the boxes.
    """
    box = cell.collect.tcp_box
    axes = [np.linspace(low, high, _GRID) for low, high in zip(box.low_m, box.high_m, strict=True)]
    ready = np.asarray(ur5_kinematics.HOME_RAD)
    found: list[tuple[float, FloatArray]] = []
    for x, y, z, yaw in itertools.product(*axes, _YAWS_RAD):
        joints = reachable_joints(cell, top_down_pose([x, y, z], yaw))
        if joints is not None and joints_are_clear(cell, joints):
            found.append((occluded_fraction(cell, joints), joints))
    for _, joints in sorted(found, key=lambda item: item[0]):
        if path_is_clear(cell, ready, joints):
            return joints
    raise CollectError(
        "no clearance pose was found in which the arm leaves the table in view; widen "
        "collect.tcp_box in the cell file, or collect with --hand-guided"
    )


def occluded_fraction(cell: CellSettings, joints_rad: FloatArray) -> float:
    """Share of the table's points, over all cameras, that arm or board hide at joints (6,)."""
    body = _body_points(cell, joints_rad)
    low, high = cell.scene.workspace.low_m, cell.scene.workspace.high_m
    x, y = np.meshgrid(np.linspace(low[0], high[0], 6), np.linspace(low[1], high[1], 6))
    table = transform_points(
        cell.geometry.base_link_from_task,
        np.column_stack([x.ravel(), y.ravel(), np.zeros(x.size)]),
    )
    hidden = []
    for camera in cell.cameras:
        camera_m = camera.nominal.matrix[:3, 3]
        rays = table - camera_m
        along = np.clip((body - camera_m) @ rays.T / np.sum(rays**2, axis=1), 0.0, 1.0)
        nearest = camera_m + along[:, :, None] * rays
        distance = np.linalg.norm(body[:, None] - nearest, axis=2)
        hidden.append(float(np.mean(distance.min(axis=0) < _ARM_RADIUS_M)))
    return float(np.mean(hidden))


def _body_points(cell: CellSettings, joints_rad: FloatArray) -> FloatArray:
    """Points (N, 3) [m] along the links, the tool and the board's outline."""
    frames = ur5_kinematics.link_frames(joints_rad, cell.arm)
    base_from_tcp = frames[5] @ cell.geometry.flange_from_tcp
    outline = transform_points(
        base_from_tcp @ cell.collect.tcp_from_board.matrix, cell.board.outline_m()
    )
    chain = np.concatenate([frames[:, :3, 3], base_from_tcp[None, :3, 3]])
    segments = [*itertools.pairwise(chain)]
    segments += [*zip(outline, np.roll(outline, 1, axis=0), strict=True)]
    return np.concatenate([_sampled(start, end) for start, end in segments])


def _sampled(start: FloatArray, end: FloatArray) -> FloatArray:
    count = int(np.ceil(np.linalg.norm(end - start) / _SAMPLE_M)) + 1
    return np.linspace(start, end, count)
