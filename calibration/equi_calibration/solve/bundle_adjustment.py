# SPDX-License-Identifier: MIT
"""Bundle adjustment of the eye-to-hand problem: one least-squares fit over all that views share.

Unknowns: the pose of each camera, the board in the hand, a small correction of every robot pose
(the robot's own error, held near zero by its standard deviation), and if asked the cameras'
intrinsics and the board's scale. Residuals are corner pixels and those corrections, each divided by
its standard deviation; the standard deviations themselves are estimated from the residuals (see
`noise`), so the covariance that comes out is a statement about this data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from equi_calibration.board.intrinsics import Intrinsics
from equi_calibration.errors import SolveError
from equi_calibration.solve.clouds import CloudConstraint
from equi_calibration.solve.hand_eye import Estimate
from equi_calibration.solve.noise import Noise, estimate_noise
from equi_calibration.solve.outliers import without_outliers
from equi_calibration.solve.parameters import Parameters, linearise
from equi_calibration.solve.problem import HandEyeProblem

FloatArray = NDArray[np.float64]

# The noise converges slowly: what the robot does not explain the corners must, and vice versa.
_ROUNDS = 10
_MOST_STEPS = 80
# Residuals beyond so many standard deviations count linearly in the robust fit.
_LOSS_SCALE = 2.0


@dataclass(frozen=True)
class AdjustmentOptions:
    """What to solve for."""

    refine_intrinsics: bool = False
    estimate_board_scale: bool = False
    focal_sigma: float = 0.01
    """Trust in the given focal lengths, as a fraction."""
    centre_sigma_px: float = 10.0
    """Trust in the given principal points [px]."""
    noise: Noise = field(default_factory=Noise)
    """Where the estimate of the standard deviations starts."""
    trust_data: bool = False
    """Views are free of outliers and `noise` is right: one plain fit."""
    clouds: CloudConstraint | None = None
    """What the depth clouds say of the cameras; None: images only."""


@dataclass(frozen=True, eq=False)
class Adjustment:
    """Result of one bundle adjustment: the estimate with its uncertainty."""

    estimate: Estimate
    intrinsics: Mapping[str, Intrinsics]
    """As given, or refined."""
    board_scale: float
    """Estimated size of the print over its stated size; 1 if not estimated."""
    board_scale_sigma: float
    covariance: Mapping[str, FloatArray]
    """(6, 6) per camera: x, y, z [m] and rotation vector [rad] of an error of base_from_camera,
    expressed in base_link about the workspace's reference point."""
    reference_m: FloatArray
    """(3,) point in base_link at which the position uncertainty is stated."""
    noise: Noise
    """Standard deviations found in the data."""
    corner_rms_px: Mapping[str, float]
    """Per camera, RMS over both coordinates of the accepted corners with the robot's own error
    taken out."""
    raw_rms_px: Mapping[str, float]
    """The same with the reported robot poses as they are."""
    rejected_corners: int
    rejected_views: tuple[str, ...]
    """Views thrown out as outliers, with their reason."""
    used: HandEyeProblem
    """The problem without the outliers."""


def bundle_adjust(
    problem: HandEyeProblem,
    start: Estimate,
    reference_m: FloatArray,
    options: AdjustmentOptions | None = None,
) -> Adjustment:
    """Adjust an estimate to all views at once; see the module's text.

    Args:
        problem: views and robot poses.
        start: hand-eye or guessed estimate.
        reference_m: point (3,) in base_link, usually the middle of the workspace, at which the
            position uncertainty is stated [m].
        options: what to solve for.

    Raises:
        SolveError: the minimum found is not one (diverged, singular, or board behind a camera).
    """
    settings = options or AdjustmentOptions()
    parameters = Parameters.of(
        problem, start, settings.refine_intrinsics, settings.estimate_board_scale
    )
    noise, cleaned, dropped_corners = settings.noise, problem, 0
    dropped_views: tuple[str, ...] = ()
    if not settings.trust_data:
        parameters = _minimise(problem, parameters, noise, settings, robust=True)
        cleaned, dropped_corners, dropped_views = without_outliers(problem, parameters)
        parameters = parameters.restricted_to(cleaned)
        for _ in range(_ROUNDS):
            parameters = _minimise(cleaned, parameters, noise, settings, robust=False)
            noise, stable = _noise_in(cleaned, parameters, noise, settings)
            if stable:
                break
    parameters = _minimise(cleaned, parameters, noise, settings, robust=False)
    return _summarise(
        cleaned,
        parameters,
        noise,
        settings,
        np.asarray(reference_m, dtype=np.float64),
        dropped_corners,
        dropped_views,
    )


def _minimise(
    problem: HandEyeProblem,
    parameters: Parameters,
    noise: Noise,
    options: AdjustmentOptions,
    *,
    robust: bool,
) -> Parameters:
    """Levenberg-Marquardt with re-weighting, linearised anew after every step.

    Normal equations of a few hundred scaled unknowns are small and well conditioned here; a general
    solver spends nearly all its time on factorising the tall Jacobian.
    """
    residuals, jacobian = _weighted(problem, parameters, noise, options)
    cost, weights = _cost(residuals, robust)
    damping = 1e-4
    for _ in range(_MOST_STEPS):
        weighted = jacobian * weights[:, None]
        normal = jacobian.T @ weighted
        gradient = weighted.T @ residuals
        damped = normal + damping * np.diag(np.diag(normal))
        try:
            step = -linalg.solve(damped, gradient, assume_a="pos")
        except linalg.LinAlgError as error:
            raise SolveError(
                "the data do not determine the answer; tilt the tool about more axes and spread "
                "the poses over the workspace"
            ) from error
        moved = parameters.moved(step)
        new_residuals, new_jacobian = _weighted(problem, moved, noise, options)
        new_cost, new_weights = _cost(new_residuals, robust)
        if not new_cost <= cost * (1.0 + 1e-12):
            damping *= 10.0
            if damping > 1e8:
                return parameters
            continue
        small = float(np.max(np.abs(step / parameters.scales()))) < 1e-5
        parameters, residuals, jacobian = moved, new_residuals, new_jacobian
        cost, weights, damping = new_cost, new_weights, max(damping / 10.0, 1e-9)
        if small:
            return parameters
    raise SolveError(
        f"no minimum after {_MOST_STEPS} steps; the start is too far off or the data inconsistent"
    )


def _cost(residuals: FloatArray, robust: bool) -> tuple[float, FloatArray]:
    """Sum of the losses, and the weight of each residual in the normal equations."""
    squared = (residuals / _LOSS_SCALE) ** 2
    if not robust:
        return float(np.sum(squared)), np.ones_like(residuals)
    root = np.sqrt(1.0 + squared)
    return float(np.sum(2.0 * (root - 1.0))), 1.0 / root


def _weighted(
    problem: HandEyeProblem, parameters: Parameters, noise: Noise, options: AdjustmentOptions
) -> tuple[FloatArray, FloatArray]:
    """Residuals (M,) over their standard deviations, and their derivative (M, size)."""
    pixels, pixel_jacobian = linearise(problem, parameters)
    pixel_sigmas_px = noise.pixel_sigmas_px(problem)
    blocks = [pixels / pixel_sigmas_px]
    jacobians = [pixel_jacobian / pixel_sigmas_px[:, None]]
    for prior, prior_jacobian, sigma in parameters.priors(
        noise.robot_position_m,
        noise.robot_rotation_rad,
        options.focal_sigma,
        options.centre_sigma_px,
    ):
        blocks.append(prior / sigma)
        jacobians.append(prior_jacobian / sigma[:, None])
    if options.clouds is not None:
        value, by_step, sigma = options.clouds.residual(parameters)
        blocks.append(value / sigma)
        jacobians.append(by_step / sigma[:, None])
    return np.concatenate(blocks), np.concatenate(jacobians)


def _noise_in(
    problem: HandEyeProblem, parameters: Parameters, noise: Noise, options: AdjustmentOptions
) -> tuple[Noise, bool]:
    """The noise that this fit's residuals show, and whether it is nearly the one assumed."""
    residuals, jacobian = _weighted(problem, parameters, noise, options)
    leverage = np.sum((jacobian @ _inverse_normal(jacobian)) * jacobian, axis=1)
    return estimate_noise(noise, problem, residuals, leverage)


def _inverse_normal(jacobian: FloatArray) -> FloatArray:
    normal = jacobian.T @ jacobian
    scale = np.sqrt(np.diag(normal))
    if np.any(scale == 0.0):
        raise SolveError("a parameter has no influence on any view; collect more varied poses")
    scaled = normal / np.outer(scale, scale)
    condition = float(np.linalg.cond(scaled))
    if not np.isfinite(condition) or condition > 1e13:
        raise SolveError(
            f"the data do not determine the answer (condition {condition:.0e}); "
            "tilt the tool about more axes and spread the poses over the workspace"
        )
    return np.linalg.inv(scaled) / np.outer(scale, scale)


def _summarise(
    problem: HandEyeProblem,
    parameters: Parameters,
    noise: Noise,
    options: AdjustmentOptions,
    reference_m: FloatArray,
    dropped_corners: int,
    dropped_views: tuple[str, ...],
) -> Adjustment:
    _, jacobian = _weighted(problem, parameters, noise, options)
    covariance = _inverse_normal(jacobian)
    estimate = parameters.estimate()
    per_camera = {
        camera: parameters.camera_covariance(covariance, camera, reference_m)
        for camera in problem.cameras
    }
    scale_sigma = parameters.scale_sigma(covariance)
    pixels, _ = linearise(problem, parameters)
    raw, _ = linearise(problem, parameters.without_corrections())
    rows = np.concatenate(
        [
            np.full(2 * len(view.corner_ids), problem.cameras.index(view.camera))
            for view in problem.views
        ]
    )
    names = problem.cameras
    return Adjustment(
        estimate=estimate,
        intrinsics=parameters.intrinsics,
        board_scale=parameters.scale,
        board_scale_sigma=scale_sigma,
        covariance=per_camera,
        reference_m=reference_m,
        noise=noise,
        corner_rms_px={n: _rms(pixels[rows == i]) for i, n in enumerate(names)},
        raw_rms_px={n: _rms(raw[rows == i]) for i, n in enumerate(names)},
        rejected_corners=dropped_corners,
        rejected_views=dropped_views,
        used=problem,
    )


def _rms(values: FloatArray) -> float:
    return float(np.sqrt(np.mean(values**2)))
