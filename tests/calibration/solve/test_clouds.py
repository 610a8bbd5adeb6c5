# SPDX-License-Identifier: MIT
"""Clouds as a constraint between the cameras: what ICP says, and how much it counts."""

from __future__ import annotations

import numpy as np
import pytest
from calibration_cells import computed_case, simulated_cell

from equi_calibration.scene.depth import Registration
from equi_calibration.scene.scene import examine_scene
from equi_calibration.solve.bundle_adjustment import AdjustmentOptions, bundle_adjust
from equi_calibration.solve.clouds import CloudConstraint
from equi_calibration.solve.hand_eye import solve_hand_eye
from equi_calibration.solve.parameters import Parameters
from equi_calibration.synthetic.cell import Imperfections, SimulatedCell
from equi_core.geometry import invert, pose_matrix, rotvec_to_matrix, transform_points

CENTRE = np.array([0.5, 0.0, 0.0])
MOTION = np.array([0.002, -0.001, 0.0015, 0.001, 0.002, -0.001])


@pytest.fixture(scope="module")
def case():
    return computed_case(0)


@pytest.fixture(scope="module")
def solution(case):
    return bundle_adjust(case.problem, solve_hand_eye(case.problem), CENTRE)


def constraint_of(solution, sigma_m):
    left, right = sorted(solution.estimate.base_from_camera)
    found = Registration(MOTION[:3], MOTION[3:], np.eye(6), 0.2, CENTRE, 1.0, 1.0, 3.0)
    return CloudConstraint(left, right, solution.estimate.base_from_camera, found, sigma_m)


def test_the_derivative_of_the_residual_is_that_of_its_value(case, solution):
    constraint = constraint_of(solution, 1e-3)
    parameters = Parameters.of(case.problem, solution.estimate, False, False)
    rng = np.random.default_rng(1)
    _, jacobian, _ = constraint.residual(parameters)
    for column in range(12):
        step = np.zeros(parameters.size)
        step[column] = 1e-6
        ahead, behind = (constraint.residual(parameters.moved(sign * step))[0] for sign in (1, -1))
        np.testing.assert_allclose(jacobian[:, column], (ahead - behind) / 2e-6, atol=1e-5)
    other = parameters.moved(np.r_[np.zeros(12), rng.normal(0, 1e-3, parameters.size - 12)])
    np.testing.assert_array_equal(constraint.residual(other)[0], constraint.residual(parameters)[0])


@pytest.mark.parametrize(("sigma_m", "share"), [(1e-6, 1.0), (1.0, 0.0)])
def test_certain_clouds_move_the_cameras_and_uncertain_ones_do_not(case, solution, sigma_m, share):
    constraint = constraint_of(solution, sigma_m)
    moved = bundle_adjust(
        case.problem,
        solution.estimate,
        CENTRE,
        AdjustmentOptions(noise=solution.noise, clouds=constraint),
    )
    shift = [
        transform_points(
            moved.estimate.base_from_camera[name]
            @ invert(solution.estimate.base_from_camera[name]),
            CENTRE[None],
        )[0]
        for name in (constraint.source, constraint.target)
    ]
    np.testing.assert_allclose(shift[0] - shift[1], share * MOTION[:3], atol=5e-5)


def test_icp_sees_a_camera_that_is_believed_tilted_by_a_third_of_a_degree():
    cell = simulated_cell()
    simulated = SimulatedCell(cell, 2, Imperfections())
    simulated.arm_visible = False
    clouds = {
        name: camera.cloud_after(0.0, 1.0)[0].astype(np.float64)
        for name, camera in simulated.cameras.items()
    }
    truth = simulated.truth.base_from_camera
    straight = examine_scene(clouds, truth, cell.scene).registration
    tilt = np.radians([0.3, 0.0, 0.0])
    # About the table's middle, so that only the tilt changes and not the place.
    turn = pose_matrix(CENTRE - rotvec_to_matrix(tilt) @ CENTRE, rotvec_to_matrix(tilt))
    tilted = examine_scene(clouds, {**truth, "cam_left": turn @ truth["cam_left"]}, cell.scene)
    found = tilted.registration.rotation_rad - straight.rotation_rad
    np.testing.assert_allclose(found[:2], -tilt[:2], atol=np.radians(0.08))
    assert straight.constrained >= 3
