# SPDX-License-Identifier: MIT
"""Plan the calibration poses: tool poses that show the board to every camera from many sides.

Positions cover the box, view angles cover a cone around each camera (and around the direction that
all cameras see at once), and poses are ordered with short joint-space paths between them. Only
poses that the arm reaches, on paths that keep board and arm clear of the table and of the arm
itself, are proposed; the driver still checks every one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.board import BoardSpec
from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.cell_file import CellSettings
from equi_calibration.errors import CollectError
from equi_core.geometry import invert, pose_matrix, rotvec_to_matrix, transform_points
from equi_core.motion import ur5_kinematics

FloatArray = NDArray[np.float64]

_LEAST_TILT_DEG = 10.0
_MOST_TILT_DEG = 45.0
_LINK_CLEARANCE_M = 0.08
# Planned views are larger than the gate asks for: a camera is centimetres from its nominal
# position.
_SQUARE_RESERVE = 1.15
_TRIES_PER_POSE = 400
_FEWEST_PER_CAMERA = 8
_ARM_RADIUS_M = 0.10
_COLUMN_RADIUS_M = 0.18
_PATH_STEP_RAD = 0.05
ALL_CAMERAS = "all cameras"
"""What a pose faces that every camera sees."""
# The arm may not swing its elbow over; each joint stays this near to the ready posture.
_JOINT_SPAN_RAD = np.radians([120.0, 80.0, 80.0, 170.0, 170.0, 185.0])


@dataclass(frozen=True, eq=False)
class PlannedPose:
    """One stop of the tour."""

    base_from_tcp: FloatArray
    joints_rad: FloatArray
    faces: str
    """The camera that the board faces."""


def plan_poses(
    cell: CellSettings, intrinsics: Mapping[str, Intrinsics], count: int, seed: int = 0
) -> list[PlannedPose]:
    """About `count` poses for a cell whose cameras are roughly where its file says.

    Raises:
        CollectError: the arm reaches too few poses in the boxes of the cell file.
    """
    rng = np.random.default_rng(seed)
    chosen: list[PlannedPose] = []
    targets = (*cell.names, ALL_CAMERAS) if len(cell.names) > 1 else cell.names
    # Some candidates have no clear path to the others and are lost again.
    candidates = round(1.25 * count)
    for number in range(candidates):
        for attempt in range(_TRIES_PER_POSE):
            faces = targets[number % len(targets)]
            if attempt >= _TRIES_PER_POSE // 2:
                # An awkward target does not block; its share goes to the cameras in turn.
                faces = cell.names[(number // len(targets)) % len(cell.names)]
            pose = _candidate(cell, intrinsics, faces, number / candidates, rng)
            if pose is not None:
                chosen.append(pose)
                break
    tour = _short_tour(cell, chosen)
    for camera in cell.names:
        facing = sum(pose.faces in (camera, ALL_CAMERAS) for pose in tour)
        needed = max(_FEWEST_PER_CAMERA, count // 4)
        if facing < needed:
            raise CollectError(
                f"only {facing} of {count} planned poses show the board to camera '{camera}', "
                f"{needed} are needed; ask for more poses (--poses), widen collect.board_box and "
                "tcp_box, or change collect.tcp_from_board in the cell file"
            )
    return tour


def board_in_view(
    board: BoardSpec,
    intrinsics: Intrinsics,
    camera_from_board: FloatArray,
    max_tilt_deg: float,
    min_square_px: float = 0.0,
) -> bool:
    """Whether the whole print lies inside the image, faces the camera and can be decoded.

    Args:
        board: the print.
        intrinsics: of the camera.
        camera_from_board: pose (4, 4) to check.
        max_tilt_deg: most oblique view.
        min_square_px: shortest distance of neighbouring corners in the image.
    """
    outline = transform_points(camera_from_board, board.outline_m())
    if np.any(outline[:, 2] < 0.25):
        return False
    pixels = intrinsics.project(outline)
    edge = 8.0
    inside = np.all(
        (pixels > edge) & (pixels < [intrinsics.width_px - edge, intrinsics.height_px - edge])
    )
    if not inside or tilt_deg(board, camera_from_board) > max_tilt_deg:
        return False
    corners = intrinsics.project(transform_points(camera_from_board, board.corners_m()))
    grid = corners.reshape(board.rows - 1, board.columns - 1, 2)
    shortest = min(
        float(np.linalg.norm(np.diff(grid, axis=axis), axis=-1).min()) for axis in (0, 1)
    )
    return shortest >= min_square_px


def tilt_deg(board: BoardSpec, camera_from_board: FloatArray) -> float:
    """Angle between the line of sight and the board's normal; above 90 its back is seen."""
    centre = transform_points(camera_from_board, board.centre_m[None])[0]
    cosine = float(camera_from_board[:3, 2] @ centre) / float(np.linalg.norm(centre))
    return float(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))


def _candidate(
    cell: CellSettings,
    intrinsics: Mapping[str, Intrinsics],
    faces: str,
    phase: float,
    rng: np.random.Generator,
) -> PlannedPose | None:
    settings = cell.collect
    seen_by = cell.names if faces == ALL_CAMERAS else (faces,)
    cameras = {name: cell.camera(name).nominal.matrix for name in seen_by}
    box = settings.board_box
    centre = rng.uniform(box.low_m, box.high_m)
    if faces == ALL_CAMERAS:
        # Cameras on opposite sides share a narrow region: half way between them and low.
        reach = np.array([0.5, 0.25, 0.25])
        middle = box.centre_m - [0.0, 0.0, 0.25 * (box.high_m[2] - box.low_m[2])]
        centre = middle + reach * (centre - box.centre_m)
    sight = sum(_unit(centre - pose[:3, 3]) for pose in cameras.values())
    most_tilt = _MOST_TILT_DEG if faces != ALL_CAMERAS else _MOST_TILT_DEG / 4
    base_from_board = _facing(_unit(np.asarray(sight)), centre, cell.board, phase, most_tilt, rng)
    steepest = cell.view_gate.max_tilt_deg - 3.0
    for name, base_from_camera in cameras.items():
        camera_from_board = invert(base_from_camera) @ base_from_board
        smallest_px = _SQUARE_RESERVE * cell.view_gate.min_square_px
        if not board_in_view(
            cell.board, intrinsics[name], camera_from_board, steepest, smallest_px
        ):
            return None
    base_from_tcp = base_from_board @ invert(settings.tcp_from_board.matrix)
    joints = reachable_joints(cell, base_from_tcp)
    if joints is None or not joints_are_clear(cell, joints):
        return None
    return PlannedPose(base_from_tcp, joints, faces)


def reachable_joints(cell: CellSettings, base_from_tcp: FloatArray) -> FloatArray | None:
    """Joints (6,) near the ready posture that reach a TCP pose with every link above the table."""
    try:
        joints = ur5_kinematics.inverse_near(
            base_from_tcp @ invert(cell.geometry.flange_from_tcp), ur5_kinematics.HOME_RAD, cell.arm
        )
    except ur5_kinematics.KinematicsError:
        return None
    if np.any(np.abs(joints - np.asarray(ur5_kinematics.HOME_RAD)) > _JOINT_SPAN_RAD):
        return None
    return joints


def joints_are_clear(cell: CellSettings, joints_rad: FloatArray) -> bool:
    """Whether board, TCP and links keep their distances at a joint vector (6,)."""
    settings = cell.collect
    frames = ur5_kinematics.link_frames(joints_rad, cell.arm)
    # Frame 0 belongs to the shoulder, which cannot reach the table.
    table_z_m = cell.geometry.table_z_m
    if float(frames[1:, 2, 3].min()) - table_z_m < _LINK_CLEARANCE_M:
        return False
    base_from_tcp = frames[5] @ cell.geometry.flange_from_tcp
    if not settings.tcp_box.contains(base_from_tcp[:3, 3]):
        return False
    outline = transform_points(
        base_from_tcp @ settings.tcp_from_board.matrix, cell.board.outline_m()
    )
    if float(outline[:, 2].min()) - table_z_m < settings.table_clearance_m:
        return False
    points = np.concatenate([outline, (outline + np.roll(outline, 1, axis=0)) / 2])
    if float(np.hypot(points[:, 0], points[:, 1]).min()) < _COLUMN_RADIUS_M:
        return False
    joints_m = np.concatenate([[frames[0][:3, 3]], frames[1:4, :3, 3]])
    return all(
        _distance_to_segment(points, joints_m[i], joints_m[i + 1]) > _ARM_RADIUS_M for i in range(2)
    )


def path_is_clear(cell: CellSettings, start_rad: FloatArray, end_rad: FloatArray) -> bool:
    """Whether the straight path in joint space keeps the distances all along."""
    steps = max(2, int(np.ceil(np.abs(end_rad - start_rad).max() / _PATH_STEP_RAD)))
    return all(
        joints_are_clear(cell, start_rad + (end_rad - start_rad) * fraction)
        for fraction in np.linspace(0.0, 1.0, steps)
    )


def _facing(
    sight: FloatArray,
    centre_m: FloatArray,
    board: BoardSpec,
    phase: float,
    most_tilt_deg: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Board at a position, facing the line of sight, then tilted about an axis and spun."""
    x = _unit(np.cross([0.0, 0.0, -1.0], sight) + 1e-9)
    facing = np.column_stack([x, np.cross(sight, x), sight])
    direction = 2 * np.pi * (phase * 3 + rng.uniform(-0.1, 0.1))
    tilt = np.radians(rng.uniform(_LEAST_TILT_DEG * (most_tilt_deg > 20.0), most_tilt_deg))
    axis = np.array([np.cos(direction), np.sin(direction), 0.0])
    spin = rng.uniform(-np.pi, np.pi)
    rotation = facing @ rotvec_to_matrix(tilt * axis) @ rotvec_to_matrix(np.array([0.0, 0.0, spin]))
    return pose_matrix(centre_m - rotation @ board.centre_m, rotation)


def _short_tour(cell: CellSettings, poses: list[PlannedPose]) -> list[PlannedPose]:
    """Nearest neighbour in joint space over clear paths; poses without a clear path are left out.

    The first pose is the one nearest to the ready posture, from which the tour is entered, and over
    which it goes on where no other pose has a clear path from the last one.
    """
    if not poses:
        return []
    ready = np.asarray(ur5_kinematics.HOME_RAD)
    left = sorted(poses, key=lambda pose: float(np.abs(pose.joints_rad - ready).max()))
    tour = [left.pop(0)]
    longest = list(tour)
    while left:
        here = tour[-1].joints_rad
        clear = _nearest_clear(cell, here, left)
        if clear is None and path_is_clear(cell, here, ready):
            clear = _nearest_clear(cell, ready, left)
        if clear is not None:
            tour.append(clear)
            left.remove(clear)
            longest = max(longest, list(tour), key=len)
        elif len(tour) > 1:
            tour.pop()  # a dead end: the tour goes on from the stop before it
        else:
            break
    return longest


def _nearest_clear(
    cell: CellSettings, here: FloatArray, poses: list[PlannedPose]
) -> PlannedPose | None:
    """The pose nearest in joint space to which the straight path is clear."""
    ordered = sorted(poses, key=lambda pose: float(np.abs(pose.joints_rad - here).max()))
    return next((pose for pose in ordered if path_is_clear(cell, here, pose.joints_rad)), None)


def _distance_to_segment(points: FloatArray, start: FloatArray, end: FloatArray) -> float:
    along = end - start
    share = np.clip((points - start) @ along / max(float(along @ along), 1e-12), 0.0, 1.0)
    return float(np.linalg.norm(points - (start + share[:, None] * along), axis=1).min())


def _unit(vector: FloatArray) -> FloatArray:
    return vector / np.linalg.norm(vector)
