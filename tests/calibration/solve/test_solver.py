# SPDX-License-Identifier: MIT
"""The solver: right answers with honest uncertainty, and data it must refuse."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from calibration_cells import computed_case, random_pose
from scipy.stats import chi2

from equi_calibration.errors import ParallelAxesError, TooFewPosesError
from equi_calibration.solve.accuracy import camera_error
from equi_calibration.solve.bundle_adjustment import AdjustmentOptions, bundle_adjust
from equi_calibration.solve.drift import find_drift
from equi_calibration.solve.hand_eye import Estimate, solve_hand_eye
from equi_calibration.solve.parameters import Parameters, linearise
from equi_calibration.solve.validation import hold_out
from equi_core.geometry import invert, rotation_about_z

CENTRE = np.array([0.5, 0.0, 0.125])


def solved(case, options=None):
    return bundle_adjust(case.problem, solve_hand_eye(case.problem), CENTRE, options)


def errors_of(case, solution):
    return {
        name: camera_error(
            solution.estimate.base_from_camera[name], truth, solution.covariance[name], CENTRE
        )
        for name, truth in case.base_from_camera.items()
    }


@pytest.fixture(scope="module")
def case():
    return computed_case(0)


@pytest.fixture(scope="module")
def solution(case):
    return solved(case)


def test_without_noise_hand_eye_calibration_is_exact():
    case = computed_case(1, pixel_px=0.0, robot_mm=0.0, robot_deg=0.0)
    found = solve_hand_eye(case.problem)
    for name, truth in case.base_from_camera.items():
        np.testing.assert_allclose(found.base_from_camera[name], truth, atol=1e-6)
    np.testing.assert_allclose(found.tcp_from_board, case.tcp_from_board, atol=1e-6)


def test_the_derivative_of_the_model_is_that_of_its_residuals(case):
    start = solve_hand_eye(case.problem)
    parameters = Parameters.of(case.problem, start, refine_intrinsics=True, estimate_scale=True)
    rng = np.random.default_rng(0)
    parameters = parameters.moved(rng.normal(0, 1e-3, parameters.size))
    _, jacobian = linearise(case.problem, parameters)
    for column in rng.choice(parameters.size, 30, replace=False):
        step = np.zeros(parameters.size)
        step[column] = 1e-6
        ahead, _ = linearise(case.problem, parameters.moved(step))
        behind, _ = linearise(case.problem, parameters.moved(-step))
        numeric = (ahead - behind) / 2e-6
        scale = max(1.0, float(np.abs(numeric).max()))
        np.testing.assert_allclose(jacobian[:, column] / scale, numeric / scale, atol=2e-5)


def test_the_answer_does_not_depend_on_a_start_that_is_5_cm_and_5_degrees_wrong(case, solution):
    rng = np.random.default_rng(3)
    wrong = Estimate(
        {n: pose @ random_pose(rng, 0.05, 5.0) for n, pose in case.base_from_camera.items()},
        case.tcp_from_board @ random_pose(rng, 0.02, 5.0),
    )
    again = bundle_adjust(case.problem, wrong, CENTRE)
    for name in case.base_from_camera:
        np.testing.assert_allclose(
            again.estimate.base_from_camera[name],
            solution.estimate.base_from_camera[name],
            atol=2e-5,
        )


@pytest.mark.slow
def test_errors_are_small_and_lie_inside_the_stated_uncertainty_over_ten_seeds():
    distances = []
    for seed in range(10):
        case = computed_case(seed)
        for error in errors_of(case, solved(case)).values():
            assert error.position_mm < 2.0
            assert error.rotation_deg < 0.2
            distances.append(error.squared_distance)
    # Mean of 20 chi-square values with 6 degrees of freedom, 99.9 % interval.
    low, high = chi2.ppf([0.0005, 0.9995], 120) / 20
    assert low < np.mean(distances) < high


def test_the_noise_of_camera_and_robot_is_found_in_the_data():
    found = [solved(computed_case(seed, poses=30)).noise for seed in range(3)]
    assert np.mean([noise.pixel_px for noise in found]) == pytest.approx(0.08, rel=0.15)
    assert np.mean([noise.robot_position_m for noise in found]) == pytest.approx(3e-4, rel=0.3)
    assert np.degrees(np.mean([n.robot_rotation_rad for n in found])) == pytest.approx(
        0.03, rel=0.35
    )


def test_plainly_wrong_corners_and_robot_poses_are_left_out_and_named(case):
    views = list(case.problem.views)
    spoilt = views[2].corners_px.copy()
    spoilt[:3] += 15.0
    views[2] = dataclasses.replace(views[2], corners_px=spoilt)
    poses = case.problem.base_from_tcp.copy()
    blunder = views[7].pose_index
    poses[blunder, :3, 3] += [0.03, 0.0, 0.0]
    problem = dataclasses.replace(case.problem, views=tuple(views), base_from_tcp=poses)
    bad = dataclasses.replace(case, problem=problem)
    found = solved(bad)
    assert found.rejected_corners >= 3
    assert any(f"pose {blunder}" in text for text in found.rejected_views)
    for error in errors_of(bad, found).values():
        assert error.position_mm < 2.0
        assert error.rotation_deg < 0.2


def test_a_print_that_is_3_percent_too_large_is_measured():
    case = computed_case(2, print_scale=1.03)
    found = solved(case, AdjustmentOptions(estimate_board_scale=True))
    assert found.board_scale == pytest.approx(1.03, abs=0.003)
    assert found.board_scale_sigma < 0.003


def test_a_wrong_focal_length_is_found_when_asked(case):
    wrong = {
        name: dataclasses.replace(lens, fx_px=lens.fx_px * 1.01, fy_px=lens.fy_px * 1.01)
        for name, lens in case.problem.intrinsics.items()
    }
    problem = dataclasses.replace(case.problem, intrinsics=wrong)
    start = solve_hand_eye(problem)
    found = bundle_adjust(problem, start, CENTRE, AdjustmentOptions(refine_intrinsics=True))
    for lens in found.intrinsics.values():
        assert lens.fx_px == pytest.approx(383.0, rel=0.003)


def test_held_out_poses_measure_the_error_in_millimetres(case, solution):
    held = hold_out(solution, CENTRE, AdjustmentOptions())
    for name in case.base_from_camera:
        assert 0.1 < held.position_mm[name] < 2.0
        assert held.orientation_deg[name] < 0.4
    assert held.poses >= 20


def test_too_few_poses_are_refused_with_the_number(case):
    few = case.problem.only_poses(set(case.problem.used_poses[:5]))
    with pytest.raises(TooFewPosesError, match="only 5 usable poses"):
        few.require_solvable()


def test_a_camera_with_hardly_any_view_is_named(case):
    views = [v for v in case.problem.views if v.camera == "cam_left"]
    views += [v for v in case.problem.views if v.camera == "cam_right"][:2]
    with pytest.raises(TooFewPosesError, match="'cam_right' has 2 usable views"):
        dataclasses.replace(case.problem, views=tuple(views)).require_solvable()


def test_rotations_about_a_single_axis_are_refused(case):
    first = case.problem.base_from_tcp[0]
    poses = case.problem.base_from_tcp.copy()
    for index in range(len(poses)):
        poses[index, :3, :3] = rotation_about_z(0.2 * index) @ first[:3, :3]
    with pytest.raises(ParallelAxesError, match="one axis only"):
        dataclasses.replace(case.problem, base_from_tcp=poses).require_solvable()


def test_a_camera_knocked_by_a_centimetre_while_collecting_is_noticed_with_the_moment():
    case = computed_case(4, poses=30)
    moved = case.base_from_camera["cam_left"].copy()
    moved[:3, 3] += [0.007, -0.004, 0.006]
    corners = case.cell.board.corners_m()
    views, knocked_after = [], 15
    for view in case.problem.views:
        if view.camera == "cam_left" and view.pose_index > knocked_after:
            pose = invert(moved) @ (case.base_from_camera["cam_left"] @ view.camera_from_board)
            pixels = case.problem.intrinsics["cam_left"].project(
                corners @ pose[:3, :3].T + pose[:3, 3]
            )
            view = dataclasses.replace(view, corners_px=pixels, camera_from_board=pose)
        views.append(view)
    knocked = dataclasses.replace(case.problem, views=tuple(views))
    found = bundle_adjust(knocked, solve_hand_eye(knocked), CENTRE)
    drift = find_drift(knocked, found, "cam_left")
    still = find_drift(case.problem, solved(case), "cam_left")
    assert drift.step_mm > 4.0
    assert abs(drift.after_pose - knocked_after) <= 4
    assert still.step_mm < 2.5 or still.significance < 8.0
