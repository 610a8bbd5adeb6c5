# SPDX-License-Identifier: MIT
"""The pins: each lives once, and none breaks the rules that hold the environment together."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from installer import doctor
from installer.layout import Profile
from installer.steps import PINS
from installer.system_packages import wanted_packages

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements"
LISTS = [REQUIREMENTS / f"{name}.txt" for name in PINS]
LOCK = REQUIREMENTS / "constraints.txt"
LINE = re.compile(r"([a-z0-9._-]+)==([^\s;]+)(?: ; ([^#]+?))?(?: +# .*)?")


def pins_of(path: Path) -> list[re.Match[str] | None]:
    lines = path.read_text().splitlines()
    return [LINE.fullmatch(line) for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("path", [*LISTS, LOCK], ids=lambda path: path.name)
def test_every_requirement_is_an_exact_pin(path: Path) -> None:
    assert pins_of(path)
    assert None not in pins_of(path)


def test_a_package_is_named_by_one_list_only() -> None:
    names = [{match[1] for match in pins_of(path) if match} for path in LISTS]
    assert sum(map(len, names)) == len(set().union(*names))


def test_the_lock_was_made_from_the_lists_as_they_are() -> None:
    locked = {(match[1], match[2]) for match in pins_of(LOCK) if match}
    listed = {(match[1], match[2]) for path in LISTS for match in pins_of(path) if match}
    assert listed - locked == set(), "run `make lock`"


def test_the_lock_names_neither_this_machine_nor_where_packages_come_from() -> None:
    text = LOCK.read_text()
    assert not re.search(r"https?:|file:|--(extra-)?index|--find-links|@ |/", text)
    assert "make lock" in text


def test_torch_is_spelled_so_that_no_cuda_comes_with_it() -> None:
    text = LOCK.read_text()
    assert re.search(r"^torch==2\.13\.0 +#", text, flags=re.MULTILINE)
    assert not re.search(r"^(nvidia|cuda|triton)", text, flags=re.MULTILINE)


def test_the_robot_needs_neither_the_networks_of_training_nor_its_simulator() -> None:
    robot = "".join((REQUIREMENTS / f"{name}.txt").read_text() for name in ("core", "robot", "ros"))
    assert "escnn==" not in robot
    assert "pybullet==" not in robot
    full = wanted_packages(REQUIREMENTS / "apt.txt", Profile.FULL, Path("/nowhere"))
    lean = wanted_packages(REQUIREMENTS / "apt.txt", Profile.ROBOT, Path("/nowhere"))
    assert set(full) - set(lean) == {"gfortran"}


def test_numpy_stays_below_2_and_scikit_learn_stays_out() -> None:
    assert version("numpy").startswith("1.26.")
    names = {match[1] for path in [*LISTS, LOCK] for match in pins_of(path) if match}
    assert "numpy" in names
    assert "scikit-learn" not in names


def test_the_doctor_reads_the_pins_of_this_python() -> None:
    text = 'a==1.0 ; python_version >= "3.11"\na==0.9 ; python_version < "3.11"\nB_c==2  # why\n'
    expected = "1.0" if sys.version_info >= (3, 11) else "0.9"
    assert doctor.applicable_pins(text) == {"a": expected, "b-c": "2"}


def test_the_doctor_names_a_wrong_version_and_the_repair(repository_root: Path) -> None:
    layout = doctor.Layout(repository_root)
    (check,) = doctor.pins(layout, ["colcon"], {"colcon-common-extensions": "0.1.0"})
    assert not check.passed
    assert "colcon-common-extensions is 0.1.0, not 0.3.0" in check.detail
    assert "requirements/colcon.txt" in check.repair


def test_the_doctor_fails_and_says_how_to_repair_an_empty_checkout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ros2_ws").mkdir()
    (tmp_path / "requirements").symlink_to(REQUIREMENTS)
    assert doctor.main(["--root", str(tmp_path)]) == 1
    output = capsys.readouterr().out
    assert re.search(r"FAIL  virtual environment +missing\n +repair: make setup", output)


def test_scikit_learn_beside_escnn_is_reported() -> None:
    checks = list(doctor.forbidden({"numpy": "2.1.0", "scikit-learn": "1.7.0"}))
    assert [check.passed for check in checks] == [False, False]
    assert "uninstall -y scikit-learn" in checks[1].repair
