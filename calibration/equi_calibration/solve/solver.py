"""From a dataset to a solution: detect, closed form, refinement, held-out poses, board scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from equi_calibration.board.detection import BoardDetector, ViewGate
from equi_calibration.cell_file import SceneSettings
from equi_calibration.collect.dataset import Dataset
from equi_calibration.solve.clouds import link_of
from equi_calibration.solve.hand_eye import Estimate, solve_closed_form
from equi_calibration.solve.problem import Problem, View
from equi_calibration.solve.refine import RefineOptions, Solution, refine
from equi_calibration.solve.validation import HoldOut, hold_out

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Solved:
    """Everything that the images of a dataset tell."""

    problem: Problem
    rejected_views: Mapping[str, tuple[str, ...]]
    """Image file to reasons, for views that the detector refused."""
    closed_form: Estimate
    solution: Solution
    hold_out: HoldOut
    board_scale: float
    """Size of the print over its stated size, from a separate fit."""
    board_scale_sigma: float


def solve_dataset(
    dataset: Dataset,
    reference_m: FloatArray,
    *,
    gate: ViewGate | None = None,
    refine_intrinsics: bool = False,
    icp: SceneSettings | None = None,
    progress: Callable[[str], None] | None = None,
) -> Solved:
    """Solve a dataset.

    Args:
        dataset: images and poses.
        reference_m: point (3,) in base_link at which uncertainties are stated [m].
        gate: when a view is good enough.
        refine_intrinsics: also solve for focal lengths and principal points.
        icp: also let the clouds of the scene draw the cameras together; None: images only.
        progress: told what is being done.
    """
    tell = progress or (lambda text: None)
    tell("finding the board in the images")
    problem, rejected = problem_of(dataset, gate)
    problem.require_solvable()
    tell("closed form")
    start = solve_closed_form(problem)
    tell("joint refinement")
    options = RefineOptions(refine_intrinsics=refine_intrinsics)
    solution = refine(problem, start, reference_m, options)
    if icp is not None:
        tell("cloud-to-cloud registration")
        link = link_of(dataset, solution.estimate.base_from_camera, icp)
        options = replace(options, clouds=link, noise=solution.noise)
        solution = refine(problem, solution.estimate, reference_m, options)
    tell("size of the print")
    scaled = refine(
        solution.used,
        solution.estimate,
        reference_m,
        RefineOptions(estimate_board_scale=True, noise=solution.noise, trust_data=True),
    )
    tell("held-out poses")
    held = hold_out(solution, reference_m, options)
    return Solved(
        problem, rejected, start, solution, held, scaled.board_scale, scaled.board_scale_sigma
    )


def problem_of(
    dataset: Dataset, gate: ViewGate | None = None
) -> tuple[Problem, dict[str, tuple[str, ...]]]:
    """Detect the board in every image; returns the good views, and why others were refused."""
    detector = BoardDetector(dataset.board, gate)
    views, rejected = [], {}
    for pose, camera in dataset.views():
        detection = detector.detect(dataset.image(pose, camera), dataset.cameras[camera].intrinsics)
        if detection.accepted and detection.camera_from_board is not None:
            views.append(
                View(
                    camera,
                    pose.index,
                    detection.corner_ids,
                    detection.corners_px,
                    detection.camera_from_board,
                    pose.images[camera],
                )
            )
        else:
            rejected[pose.images[camera]] = detection.rejections
    poses = np.array([pose.base_from_tcp for pose in dataset.poses]).reshape(-1, 4, 4)
    intrinsics = {name: camera.intrinsics for name, camera in dataset.cameras.items()}
    return Problem(dataset.board, intrinsics, poses, tuple(views)), rejected
