# SPDX-License-Identifier: MIT
"""The table and its blocks through calibrated cameras: what `check` evaluates of the clouds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equi_calibration.cell_file import SceneSettings
from equi_calibration.errors import SceneError
from equi_calibration.scene.blocks import (
    Block,
    block_shift_mm,
    disagreement_mm,
    find_blocks,
    match_blocks,
)
from equi_calibration.scene.depth import (
    DepthCorrection,
    Registration,
    TablePlane,
    depth_correction,
    find_table,
    register,
    to_base,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SceneView:
    """The scene as one camera sees it."""

    points_task_m: FloatArray
    """Corrected cloud (N, 3) in the task frame."""
    correction: DepthCorrection
    raw_table: TablePlane
    """Before the depth correction."""
    table: TablePlane
    """After it."""
    blocks: tuple[Block, ...]


@dataclass(frozen=True, eq=False)
class SceneReport:
    """The scene as all cameras see it; with one camera the comparisons are NaN."""

    views: Mapping[str, SceneView]
    block_shift_mm: float
    """RMS distance of the blocks that two cameras see; NaN without common blocks."""
    common_blocks: int
    cross_camera_mm: float
    """RMS disagreement over the workspace."""
    registration: Registration | None


def examine_scene(
    clouds_m: Mapping[str, FloatArray],
    base_from_cloud: Mapping[str, FloatArray],
    settings: SceneSettings,
    corrections: Mapping[str, DepthCorrection] | None = None,
) -> SceneReport:
    """Examine clouds of a table with blocks.

    Args:
        clouds_m: per camera, points (N, 3) in the cloud's optical frame [m].
        base_from_cloud: per camera, calibrated pose (4, 4) in base_link.
        settings: task frame, workspace and block.
        corrections: depth corrections to apply; estimated from these clouds if None.
    """
    views = {}
    for name, cloud in clouds_m.items():
        pose = settings.geometry.to_task(base_from_cloud[name])
        try:
            raw = find_table(to_base(cloud, pose), settings.workspace)
            correction = (
                depth_correction(cloud, pose, settings.workspace)
                if corrections is None
                else corrections[name]
            )
            points = to_base(cloud, pose, correction)
            table = find_table(points, settings.workspace)
        except SceneError as error:
            raise SceneError(f"camera '{name}': {error}") from error
        blocks = find_blocks(points, table, settings.workspace, settings.block_size_m)
        views[name] = SceneView(points, correction, raw, table, tuple(blocks))
    names = sorted(views)
    if len(names) < 2:
        return SceneReport(views, float("nan"), 0, float("nan"), None)
    first, second = views[names[0]], views[names[1]]
    pairs = match_blocks(first.blocks, second.blocks)
    return SceneReport(
        views,
        block_shift_mm(pairs),
        len(pairs),
        disagreement_mm((first.table, second.table), pairs, settings.workspace),
        register(first.points_task_m, second.points_task_m, settings.workspace),
    )
