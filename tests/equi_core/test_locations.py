# SPDX-License-Identifier: MIT
"""Where cells, models and calibrations are found: by path, in search paths, installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from equi_core.locations import folders
from equi_core.locations.find import NotFoundError, find_calibration, find_cell_file, find_model


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed workspace and a home of ROS, both empty; nothing else is searched."""
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"{tmp_path / 'elsewhere'}:{tmp_path / 'install'}")
    monkeypatch.setenv("ROS_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("EQUI_MODELS", raising=False)
    monkeypatch.delenv("EQUI_CELLS", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "install"


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_cell_is_found_by_path_in_the_search_path_at_home_and_installed(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = put(prefix / "share/equi_bringup/cells/lab.yaml")
    assert find_cell_file("lab") == installed
    own = put(tmp_path / "home/equi/cells/lab.yaml")
    assert find_cell_file("lab") == own
    listed = put(tmp_path / "second/lab.yaml")
    monkeypatch.setenv("EQUI_CELLS", f"{tmp_path / 'first'}:{tmp_path / 'second'}")
    assert find_cell_file("lab") == listed
    assert find_cell_file(str(own)) == own
    put(tmp_path / "mine.yaml")
    assert find_cell_file("mine.yaml") == Path("mine.yaml")


def test_an_unknown_cell_is_refused_with_the_nearest_name_and_the_places(prefix: Path) -> None:
    put(prefix / "share/equi_bringup/cells/lab.yaml")
    with pytest.raises(NotFoundError) as caught:
        find_cell_file("labs")
    assert "did you mean 'lab'" in str(caught.value)
    assert str(prefix / "share/equi_bringup/cells") in str(caught.value)
    with pytest.raises(NotFoundError, match=r"no cell file .*/gone\.yaml"):
        find_cell_file("gone.yaml")


def test_a_model_is_found_by_path_in_the_search_path_at_home_and_installed(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = put(prefix / "share/equi_models/models/picking/contract.json").parent
    assert find_model("picking") == installed
    own = put(tmp_path / "home/equi/models/picking/contract.json").parent
    assert find_model("picking") == own
    listed = put(tmp_path / "trained/picking/contract.json").parent
    monkeypatch.setenv("EQUI_MODELS", str(tmp_path / "trained"))
    assert find_model("picking") == listed
    # With a slash it is a path, from where the command runs.
    assert find_model("home/equi/models/picking") == own
    assert find_model(f"{installed}/") == installed


def test_a_folder_without_a_contract_is_no_model(prefix: Path, tmp_path: Path) -> None:
    put(tmp_path / "home/equi/models/picking/policy.safetensors")
    with pytest.raises(NotFoundError, match="no model is called 'picking'; there are: none"):
        find_model("picking")
    with pytest.raises(NotFoundError, match=r"home/equi/models/picking \(contract.json is missing"):
        find_model("home/equi/models/picking")


def test_a_calibration_of_ones_own_comes_before_the_installed_one(
    prefix: Path, tmp_path: Path
) -> None:
    installed = put(prefix / "share/equi_calibration/results/sim/calibration.yaml").parent
    assert find_calibration("sim") == installed
    own = put(tmp_path / "home/equi/calibration/sim/calibration.yaml").parent
    assert find_calibration("sim") == own


def test_a_cell_without_a_calibration_gets_a_writable_place_for_it(
    prefix: Path, tmp_path: Path
) -> None:
    assert find_calibration("lab") == tmp_path / "home/equi/calibration/lab"


def test_without_ros_home_the_users_files_are_in_the_folder_of_ros(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ROS_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert folders.own_folder("cells") == Path("/home/somebody/.ros/equi/cells")


def test_the_checkout_has_its_cells_models_and_calibration_installed() -> None:
    assert find_cell_file("sim").is_file()
    assert (find_model("block_picking") / "policy.safetensors").is_file()
    assert (find_calibration("sim") / "calibration.yaml").is_file()
