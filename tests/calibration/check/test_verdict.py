# SPDX-License-Identifier: MIT
"""The verdict on rendered data: it passes when it may and names the cause when it must fail."""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from calibration_cells import simulated_cell

from equi_calibration.check.quick import quick_check
from equi_calibration.check.result import calibration_of
from equi_calibration.check.verdict import evaluate
from equi_calibration.cli import main
from equi_calibration.collect.dataset import load_dataset
from equi_calibration.errors import DatasetError
from equi_calibration.scene.depth import DepthCorrection
from equi_calibration.scene.scene import examine_scene
from equi_calibration.solve.accuracy import camera_error
from equi_calibration.solve.clouds import examine_dataset
from equi_calibration.solve.solution import Solution
from equi_calibration.synthetic.cell import Imperfections, SimulatedCell
from equi_calibration.synthetic.recording import make_dataset, read_ground_truth
from equi_core.calibration import CalibrationFormatError, CalibrationRefusedError, CellCalibration

SEED = 3


@pytest.fixture(scope="module")
def cell():
    return simulated_cell()


@pytest.fixture(scope="module")
def folder(cell, tmp_path_factory):
    """A rendered dataset, solved and checked by the commands a user types."""
    path = tmp_path_factory.mktemp("calibration") / "dataset"
    make_dataset(path, cell, SEED, poses=22)
    assert main(["solve", str(path)]) == 0
    assert main(["check", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def dataset(folder):
    return load_dataset(folder)


@pytest.fixture(scope="module")
def solution(folder):
    return Solution.load(folder)


@pytest.fixture(scope="module")
def scene(cell, dataset, solution):
    return examine_dataset(dataset, solution.base_from_camera, cell.scene)


def problems(cell, dataset, solution, scene, **options):
    verdict = evaluate(cell, dataset, solution, scene, **options)
    assert not verdict.passed
    return " | ".join(verdict.problems)


def clouds(cell, **imperfections):
    """Clouds of the free table in the same simulated cell, with something changed."""
    simulated = SimulatedCell(cell, SEED, Imperfections(**imperfections))
    simulated.arm_visible = False
    return {
        name: camera.cloud_after(0.0, 1.0)[0].astype(np.float64)
        for name, camera in simulated.cameras.items()
    }


def test_images_give_the_cameras_to_2_mm_and_a_fifth_of_a_degree(folder, solution):
    truth = read_ground_truth(folder)
    for name, camera in solution.cameras.items():
        error = camera_error(
            camera.base_from_camera,
            truth.base_from_camera[name],
            np.array(camera.covariance),
            np.array([0.5, 0.0, 0.125]),
        )
        assert error.position_mm < 2.0
        assert error.rotation_deg < 0.2


def test_a_good_calibration_passes_and_perception_may_use_it(cell, folder):
    stored = CellCalibration.load(folder / "results" / "sim")
    assert stored.passed
    stored.require_usable(cell.names, cell="sim")
    page = (folder / "results" / "sim" / "report.html").read_text()
    assert "PASS" in page
    assert page.count("data:image/png;base64") >= 6
    assert "http://" not in page
    assert "https://" not in page


def test_a_camera_shifted_by_a_centimetre_after_the_images_fails(cell, dataset, solution):
    moved = clouds(cell, moved_camera="cam_left", moved_after_pose=0, moved_m=0.01)
    poses = {name: camera.base_from_camera for name, camera in solution.cameras.items()}
    scene = examine_scene(moved, poses, cell.scene)
    assert "cameras: disagreement" in problems(cell, dataset, solution, scene)


def test_stale_data_fail_with_their_age(cell, dataset, solution, scene):
    later = datetime.now(timezone.utc) + timedelta(days=40)
    assert "stale" in problems(cell, dataset, solution, scene, now=later)


def test_a_print_3_percent_off_fails_and_is_named(cell, dataset, solution, scene):
    wrong = dataclasses.replace(solution, board_scale=1.03, board_scale_sigma=0.001)
    assert "103.00 % of its stated size" in problems(cell, dataset, wrong, scene)


def test_swapped_cameras_fail_and_are_named(cell, dataset, solution, scene):
    left, right = solution.cameras["cam_left"], solution.cameras["cam_right"]
    swapped = dataclasses.replace(solution, cameras={"cam_left": right, "cam_right": left})
    assert "the cameras are swapped" in problems(cell, dataset, swapped, scene)


def test_another_device_than_the_cell_file_names_fails(cell, dataset, solution, scene):
    other = dataclasses.replace(
        cell,
        cameras=tuple(dataclasses.replace(camera, serial="987") for camera in cell.cameras),
    )
    assert "images are of serial simulated-cam_left" in problems(other, dataset, solution, scene)


def test_a_camera_that_moved_while_collecting_fails_with_the_pose(cell, dataset, solution, scene):
    left = dataclasses.replace(
        solution.cameras["cam_left"], drift_mm=8.0, drift_significance=30.0, drift_after_pose=7
    )
    moved = dataclasses.replace(solution, cameras={**solution.cameras, "cam_left": left})
    assert "moved after pose 7" in problems(cell, dataset, moved, scene)


def test_a_failed_calibration_is_refused_by_perception(cell, dataset, solution, scene):
    later = datetime.now(timezone.utc) + timedelta(days=40)
    verdict = evaluate(cell, dataset, solution, scene, now=later)
    failed = calibration_of(cell, dataset, solution, scene, verdict)
    with pytest.raises(CalibrationRefusedError, match="failed its check"):
        failed.require_usable(cell.names)


def test_a_calibration_edited_by_hand_is_refused(folder, tmp_path):
    text = (folder / "results" / "sim" / "calibration.yaml").read_text()
    edited = tmp_path / "calibration.yaml"
    edited.write_text(text.replace("valid_for_days: 30.0", "valid_for_days: 3000.0"))
    with pytest.raises(CalibrationFormatError, match="edited by hand"):
        CellCalibration.load(edited)


def test_an_edited_solution_is_refused(folder, tmp_path):
    content = json.loads((folder / "solution.json").read_text())
    content["board_scale"] = 1.0
    (tmp_path / "solution.json").write_text(json.dumps(content))
    with pytest.raises(DatasetError, match="edited"):
        Solution.load(tmp_path)


def test_the_daily_check_passes_while_nothing_moved(cell, folder):
    stored = CellCalibration.load(folder / "results" / "sim")
    report = quick_check(cell, stored, clouds(cell))
    assert report.passed
    assert report.scene.common_blocks == 3


def test_the_daily_check_notices_a_camera_knocked_by_a_centimetre(cell, folder):
    stored = CellCalibration.load(folder / "results" / "sim")
    knocked = clouds(cell, moved_camera="cam_left", moved_after_pose=0, moved_m=0.01)
    report = quick_check(cell, stored, knocked)
    assert not report.passed
    assert "moved" in report.conclusion or "slid" in report.conclusion


def test_the_daily_check_names_swapped_cables(cell, folder):
    stored = CellCalibration.load(folder / "results" / "sim")
    report = quick_check(cell, stored, clouds(cell, swap_cameras=True))
    assert not report.passed
    assert "swapped" in report.conclusion


def test_a_table_without_blocks_is_not_decided(cell, folder):
    stored = CellCalibration.load(folder / "results" / "sim")
    simulated = SimulatedCell(cell, SEED, blocks_xy_yaw=())
    simulated.arm_visible = False
    bare = {n: c.cloud_after(0.0, 1.0)[0].astype(float) for n, c in simulated.cameras.items()}
    report = quick_check(cell, stored, bare)
    assert not report.passed
    assert "Put blocks on the table" in report.conclusion


def test_a_verdict_without_a_block_says_that_none_was_seen(cell, folder, dataset, scene):
    bare = dataclasses.replace(scene, common_blocks=0, block_shift_mm=float("nan"))
    verdict = evaluate(cell, dataset, Solution.load(folder), bare)
    (check,) = [check for check in verdict.checks if "blocks" in check.name]
    assert not verdict.passed
    assert check.name == "disagreement on the blocks (none seen)"
    assert check.advice.startswith("No block is seen by both cameras. Put blocks")


def test_the_depth_scale_of_the_device_is_found(scene):
    for view in scene.views.values():
        at_one_metre = view.correction.scale * 1.0 + view.correction.offset_m
        assert at_one_metre == pytest.approx(1 / 1.004, abs=0.002)
        assert isinstance(view.correction, DepthCorrection)


@pytest.mark.parametrize("command", [[], ["board"], ["solve"], ["check"], ["collect"], ["latency"]])
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    assert "equi-calibrate" in capsys.readouterr().out


def test_a_folder_that_is_no_dataset_is_answered_with_code_2(tmp_path, capsys):
    assert main(["solve", str(tmp_path)]) == 2
    assert "not a dataset" in capsys.readouterr().err
