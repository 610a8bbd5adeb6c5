# SPDX-License-Identifier: MIT
"""The verdict: every measured quantity against its limit, PASS or FAIL, and what to do.

Pure functions over numbers: nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

import numpy as np
from numpy.typing import NDArray

from equi_calibration.cell_file import CellSettings, VerdictLimits
from equi_calibration.check.checks import Check, Verdict, below, yes_no
from equi_calibration.collect.dataset import Dataset
from equi_calibration.scene.scene import SceneReport
from equi_calibration.solve.drift import pose_difference
from equi_calibration.solve.solution import CameraSolution, Solution

FloatArray = NDArray[np.float64]

_DRIFT_SIGNIFICANCE = 8.0
_MOST_REJECTED_SHARE = 0.3


def evaluate(
    cell: CellSettings,
    dataset: Dataset,
    solution: Solution,
    scene: SceneReport,
    now: datetime | None = None,
) -> Verdict:
    """Compare a solution, and the scene seen through it, with the cell's limits."""
    # Causes come before their consequences, so that the first problem named is the one to mend.
    checks: list[Check] = [_identity(cell, dataset, solution)]
    checks += [_serial(cell, dataset, name) for name in cell.names]
    checks.append(_age(cell.limits, solution.created_utc, now))
    checks += _nominal_pose_checks(cell, solution.base_from_camera)
    checks += _common_checks(cell.limits, solution)
    checks += [_drift(cell.limits, name, solution.cameras[name]) for name in cell.names]
    for name in cell.names:
        checks += _camera_checks(cell, name, solution)
    checks += _scene_checks(cell, scene)
    return Verdict(tuple(checks))


def _identity(cell: CellSettings, dataset: Dataset, solution: Solution) -> Check:
    same = dataset.cell == cell.cell and solution.dataset_checksum == dataset.checksum
    return yes_no(
        "dataset",
        "belongs to this cell and solution",
        same,
        f"The dataset is of cell '{dataset.cell}', the cell file of '{cell.cell}'; or the solution "
        "was computed from another dataset. Solve this cell's own dataset.",
    )


def _serial(cell: CellSettings, dataset: Dataset, name: str) -> Check:
    expected = cell.camera(name).serial
    found = dataset.cameras[name].serial if name in dataset.cameras else "missing"
    return yes_no(
        name,
        "is the device of the cell file",
        expected == found,
        f"The images are of serial {found}, the cell file says {expected}. Exchange the cables, or "
        "correct the cell file if the device was replaced, and collect again.",
    )


def _camera_checks(cell: CellSettings, name: str, solution: Solution) -> list[Check]:
    limits, found = cell.limits, solution.cameras[name]
    total = found.views + found.rejected_views
    return [
        below(
            name,
            "reprojection error",
            found.reprojection_px,
            limits.reprojection_px,
            "px",
            "Wrong intrinsics, a bent board or blurred images. Check the camera's intrinsics; "
            "solve with --refine-intrinsics; collect again.",
        ),
        below(
            name,
            "held-out position error",
            found.position_error_mm,
            limits.position_error_mm,
            "mm",
            "The answer does not carry over to new poses. Collect more poses, wider spread; check "
            "that the board sits tight in the gripper and the TCP of the controller is right.",
        ),
        below(
            name,
            "held-out orientation error",
            found.orientation_error_deg,
            limits.orientation_error_deg,
            "deg",
            "As for the position; bring the board nearer to this camera.",
        ),
        below(
            name,
            "95 % uncertainty in the workspace",
            found.position_uncertainty_mm,
            limits.uncertainty_mm,
            "mm",
            "The poses do not determine this camera well enough. Collect more views of it.",
        ),
        below(
            name,
            "share of rejected views",
            found.rejected_views / max(total, 1),
            _MOST_REJECTED_SHARE,
            "",
            "Too many views contradict the rest: something moved, or the images do not belong to "
            "the poses. See the rejected views in the report, then collect again.",
        ),
    ]


def _drift(limits: VerdictLimits, name: str, found: CameraSolution) -> Check:
    moved = found.drift_significance > _DRIFT_SIGNIFICANCE
    size = found.drift_mm if moved else 0.0
    limit = limits.moved_mm / 2
    return below(
        name,
        "step while collecting",
        size,
        limit,
        "mm",
        f"The camera (or the board in the hand) moved after pose {found.drift_after_pose}. "
        "Tighten its mount and collect again.",
    )


def _nominal_pose_checks(cell: CellSettings, found: Mapping[str, FloatArray]) -> list[Check]:
    """Each camera near its own nominal pose; a camera at another one's pose is a swap."""
    limits = cell.limits
    checks = []
    for name in cell.names:
        distance, angle = pose_difference(cell.camera(name).nominal.matrix, found[name])
        near = distance <= limits.nominal_position_m and angle <= limits.nominal_rotation_deg
        advice = (
            "The camera is not where the cell file says it was mounted. If it was remounted, "
            "correct position_m and target_m there; otherwise the solution is wrong."
        )
        for other in cell.names:
            if other == name or near:
                continue
            to_other = pose_difference(cell.camera(other).nominal.matrix, found[name])
            if to_other[0] <= limits.nominal_position_m and (
                to_other[1] <= limits.nominal_rotation_deg
            ):
                advice = (
                    f"It is where '{other}' should be: the cameras are swapped. Exchange the "
                    "cables or the serial numbers in the cell file, and collect again."
                )
        checks.append(
            below(
                name,
                "distance from its nominal position",
                distance,
                limits.nominal_position_m,
                "m",
                advice,
            )
        )
        checks.append(
            below(
                name,
                "rotation from its nominal orientation",
                angle,
                limits.nominal_rotation_deg,
                "deg",
                advice,
            )
        )
    return checks


def _common_checks(limits: VerdictLimits, solution: Solution) -> list[Check]:
    percent = 100 * abs(solution.board_scale - 1.0)
    # Only what is certain counts against the board: two standard deviations are allowed for.
    certain = max(0.0, percent - 200 * solution.board_scale_sigma)
    checks = [
        below(
            "board",
            "size of the print against its definition",
            certain,
            limits.board_scale_percent,
            "%",
            f"The print is {100 * solution.board_scale:.2f} % of its stated size. Measure it and "
            "put the true square_m and marker_m into the cell file, or print at 100 %; collect "
            "again.",
        ),
        below(
            "robot",
            "spread of its own position error",
            solution.robot_position_noise_mm,
            limits.robot_error_mm,
            "mm",
            "The robot's poses contradict each other. Check the TCP set in the controller, the "
            "factory kinematics and that the board does not slip in the gripper.",
        ),
    ]
    if solution.cross_camera_board_mm is not None:
        checks.append(
            below(
                "cameras",
                "disagreement on the board",
                solution.cross_camera_board_mm,
                limits.cross_camera_mm,
                "mm",
                "Two cameras see the same board at two positions. Collect again.",
            )
        )
    return checks


def _scene_checks(cell: CellSettings, scene: SceneReport) -> list[Check]:
    limits, workspace = cell.limits, cell.scene.workspace
    checks = []
    for name, view in scene.views.items():
        checks.append(
            below(
                name,
                "table plane",
                view.table.worst_mm(workspace),
                limits.table_plane_mm,
                "mm",
                "The table is not where geometry.table_z_m of the cell file says. Measure it: if "
                "it is right, the camera's tilt is wrong: collect again.",
            )
        )
        checks.append(
            below(
                name,
                "depth scale error",
                100 * abs(view.correction.scale - 1.0 + view.correction.offset_m / 0.9),
                limits.depth_scale_percent,
                "%",
                "Depths are too long or too short, or the camera moved towards or from the table "
                "since the images were taken. Run the device's own depth calibration; collect "
                "again.",
            )
        )
    if len(scene.views) > 1:
        checks.append(
            below(
                "cameras",
                "disagreement over the workspace",
                scene.cross_camera_mm,
                limits.cross_camera_mm,
                "mm",
                "The clouds of the two cameras do not lie on each other: a camera moved since the "
                "images were taken, or its depth is off. Collect again.",
            )
        )
        checks.append(_blocks(limits, scene))
    return checks


def _blocks(limits: VerdictLimits, scene: SceneReport) -> Check:
    """Whether both cameras see the blocks at one place; without a block nobody can say."""
    arrange = (
        "Put blocks of the size in the cell file on the table, well apart and inside the "
        "workspace; collect again."
    )
    name = "disagreement on the blocks"
    advice = f"The cameras see the blocks at different positions. {arrange}"
    if scene.common_blocks == 0:
        name += " (none seen)"
        advice = f"No block is seen by both cameras. {arrange}"
    return below("cameras", name, scene.block_shift_mm, limits.block_mm, "mm", advice)


def _age(limits: VerdictLimits, created_utc: str, now: datetime | None) -> Check:
    created = datetime.fromisoformat(created_utc.replace("Z", "+00:00"))
    reference = now or datetime.now(timezone.utc)
    days = max(0.0, (reference - created).total_seconds() / 86400.0)
    return below(
        "data", "age", days, limits.valid_for_days, "days", "The data are stale. Collect again."
    )
