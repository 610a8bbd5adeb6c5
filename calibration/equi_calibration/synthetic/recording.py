# SPDX-License-Identifier: MIT
"""Make a synthetic dataset with known truth: the whole collecting procedure in a simulated cell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equi_calibration.cell_file import CellSettings
from equi_calibration.collect.dataset import SYNTHETIC_SERIAL, Dataset
from equi_calibration.collect.dataset_writer import DatasetWriter
from equi_calibration.collect.poses import plan_poses
from equi_calibration.collect.session import Progress, add_scene, collect_dataset
from equi_calibration.errors import DatasetError
from equi_calibration.synthetic.cell import GroundTruth, Imperfections, SimulatedCell
from equi_core.files.plain_data import PlainDataError, read_json

FloatArray = NDArray[np.float64]

TRUTH_FILE = "truth.json"


def make_dataset(
    folder: Path,
    cell: CellSettings,
    seed: int,
    imperfections: Imperfections | None = None,
    *,
    poses: int | None = None,
    progress: Progress | None = None,
) -> tuple[Dataset, SimulatedCell]:
    """Collect a dataset in a simulated cell; the truth is written beside it."""
    simulated = SimulatedCell(cell, seed, imperfections)
    lenses = {name: camera.intrinsics for name, camera in simulated.cameras.items()}
    tour = plan_poses(cell, lenses, poses or cell.collect.poses, seed)

    def record_scene(writer: DatasetWriter) -> None:
        simulated.arm_visible = False
        add_scene(writer, "blocks", len(simulated.blocks_xy_yaw), simulated.arm, simulated.cameras)
        simulated.arm_visible = True

    dataset = collect_dataset(
        folder,
        cell,
        simulated.arm,
        simulated.cameras,
        tour,
        progress=progress,
        record_scene=record_scene,
        robot_serial=SYNTHETIC_SERIAL,
    )
    truth = {
        "base_from_camera": {
            name: pose.tolist() for name, pose in simulated.truth.base_from_camera.items()
        },
        "tcp_from_board": simulated.truth.tcp_from_board.tolist(),
    }
    (folder / TRUTH_FILE).write_text(json.dumps(truth, indent=1), encoding="utf-8")
    return dataset, simulated


def read_ground_truth(folder: Path) -> GroundTruth:
    """The truth of a synthetic dataset."""
    path = folder / TRUTH_FILE
    if not path.is_file():
        raise DatasetError(f"no {TRUTH_FILE} in {folder}: the truth of a real dataset is unknown")
    try:
        content = read_json(path)
        return GroundTruth(
            {name: np.array(pose) for name, pose in content["base_from_camera"].items()},
            np.array(content["tcp_from_board"]),
        )
    except (PlainDataError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise DatasetError(f"{path} is damaged: {error}") from error
