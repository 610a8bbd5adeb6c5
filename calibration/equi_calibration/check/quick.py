# SPDX-License-Identifier: MIT
"""Quick check, without motion: say from clouds of the table and a block if a camera has moved.

The stored calibration and depth correction are applied as they are. A camera that moved in height
or tilt sees the table elsewhere; one that slid or rotated sees the blocks elsewhere than the other
camera does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equi_calibration.cell_file import CellSettings
from equi_calibration.check.checks import Check, below, yes_no
from equi_calibration.errors import SceneError
from equi_calibration.scene.depth import DepthCorrection
from equi_calibration.scene.scene import SceneReport, examine_scene
from equi_core.calibration import CellCalibration

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class QuickReport:
    """Result of the daily check."""

    checks: tuple[Check, ...]
    scene: SceneReport | None
    """None if a camera does not even find the table."""
    conclusion: str

    @property
    def passed(self) -> bool:
        """Whether everything is where it was."""
        return all(check.passed for check in self.checks)


def quick_check(
    cell: CellSettings, calibration: CellCalibration, clouds_m: Mapping[str, FloatArray]
) -> QuickReport:
    """Check clouds (N, 3) of the free table with at least one block, taken just now."""
    try:
        scene = _seen_with(cell, calibration, clouds_m, {name: name for name in cell.names})
    except SceneError as error:
        failed = (yes_no("scene", "table found", False, str(error)),)
        return QuickReport(failed, None, _swap_or(cell, calibration, clouds_m, str(error)))
    limit = cell.limits.moved_mm
    checks = [
        below(
            name,
            "table plane against the cell file",
            view.table.worst_mm(cell.scene.workspace),
            limit,
            "mm",
            "The camera's height or tilt changed.",
        )
        for name, view in scene.views.items()
    ]
    if len(scene.views) > 1:
        advice = "A camera slid or rotated."
        if scene.common_blocks == 0:
            advice = "No block is seen by both cameras: put one or more on the table."
        name = f"disagreement on {scene.common_blocks} block(s)"
        checks.append(below("cameras", name, scene.block_shift_mm, limit, "mm", advice))
    if all(check.passed for check in checks):
        return QuickReport(tuple(checks), scene, "The cameras are where they were calibrated.")
    moved = [check.subject for check in checks if not check.passed and check.subject in cell.names]
    if moved:
        text = f"{' and '.join(moved)} moved since the calibration. Calibrate again."
    elif scene.common_blocks == 0:
        text = "Not decided: no block is seen by both cameras. Put blocks on the table and repeat."
    else:
        text = (
            f"One of {' and '.join(cell.names)} slid or rotated since the calibration (the table "
            "alone cannot tell which). Calibrate again."
        )
    return QuickReport(tuple(checks), scene, _swap_or(cell, calibration, clouds_m, text))


def _swap_or(
    cell: CellSettings,
    calibration: CellCalibration,
    clouds_m: Mapping[str, FloatArray],
    otherwise: str,
) -> str:
    """Name a swap if exchanging the two cameras explains the scene; else the given text."""
    if len(cell.names) != 2:
        return otherwise
    first, second = cell.names
    try:
        scene = _seen_with(cell, calibration, clouds_m, {first: second, second: first})
    except SceneError:
        return otherwise
    limit = cell.limits.moved_mm
    explained = all(
        view.table.worst_mm(cell.scene.workspace) <= limit for view in scene.views.values()
    ) and (scene.common_blocks > 0 and scene.block_shift_mm <= limit)
    if not explained:
        return otherwise
    return f"{first} and {second} are swapped. Exchange their cables or topics."


def _seen_with(
    cell: CellSettings,
    calibration: CellCalibration,
    clouds_m: Mapping[str, FloatArray],
    calibrated_as: Mapping[str, str],
) -> SceneReport:
    cameras = {name: calibration.camera(calibrated_as[name]) for name in cell.names}
    missing = [name for name in cell.names if name not in clouds_m]
    if missing:
        raise SceneError(f"no cloud of {', '.join(missing)}")
    return examine_scene(
        {name: clouds_m[name] for name in cell.names},
        {name: camera.base_from_camera for name, camera in cameras.items()},
        cell.scene,
        {
            name: DepthCorrection(camera.depth_scale, camera.depth_offset_m)
            for name, camera in cameras.items()
        },
    )
