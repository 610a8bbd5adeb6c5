"""The pins: each lives once, and none breaks the rules that hold the environment together."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path

import doctor
import pytest
from setup_steps.layout import Profile
from setup_steps.steps import PINS
from setup_steps.system_packages import wanted_packages

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements"
FILES = [REQUIREMENTS / f"{name}.txt" for name in (*PINS, "constraints")]
LINE = re.compile(r'([a-z0-9._-]+)==([^\s;]+)(?: ; (python_version (?:<|>=) "3\.11"))?(?:  # .*)?')


def lines_of(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_requirement_is_an_exact_pin(path: Path) -> None:
    assert [line for line in lines_of(path) if not LINE.fullmatch(line)] == []


def test_each_pin_lives_in_one_place() -> None:
    pins = [LINE.fullmatch(line) for path in FILES for line in lines_of(path)]
    keys = [(match[1], match[3]) for match in pins if match]
    assert len(keys) == len(set(keys))
    by_name: dict[str, list[str]] = {}
    for name, marker in keys:
        by_name.setdefault(name, []).append(marker)
    both = {None}
    assert all(len(set(found)) == 1 or both.isdisjoint(found) for found in by_name.values())


def test_the_robot_needs_neither_the_networks_of_training_nor_its_simulator() -> None:
    robot = "".join((REQUIREMENTS / f"{name}.txt").read_text() for name in ("core", "robot", "ros"))
    assert "escnn==" not in robot
    assert "pybullet==" not in robot
    full = wanted_packages(REQUIREMENTS / "apt.txt", Profile.FULL, Path("/nowhere"))
    lean = wanted_packages(REQUIREMENTS / "apt.txt", Profile.ROBOT, Path("/nowhere"))
    assert set(full) - set(lean) == {"gfortran"}


def test_numpy_stays_below_2_and_scikit_learn_stays_out() -> None:
    assert version("numpy").startswith("1.26.")
    text = "".join(path.read_text() for path in FILES)
    assert "scikit-learn" not in text.replace("# never beside scikit-learn", "")


def test_the_doctor_reads_the_pins_of_this_python() -> None:
    text = 'a==1.0 ; python_version >= "3.11"\na==0.9 ; python_version < "3.11"\nB_c==2  # why\n'
    expected = "1.0" if sys.version_info >= (3, 11) else "0.9"
    assert doctor.applicable_pins(text) == {"a": expected, "b-c": "2"}


def test_the_doctor_names_a_wrong_version_and_the_repair(repository_root: Path) -> None:
    layout = doctor.Layout(repository_root)
    (finding,) = doctor.pins(layout, ["colcon"], {"colcon-common-extensions": "0.1.0"})
    assert not finding.passed
    assert "colcon-common-extensions is 0.1.0, not 0.3.0" in finding.detail
    assert "requirements/colcon.txt" in finding.repair


def test_the_doctor_fails_and_says_how_to_repair_an_empty_checkout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ros2_ws").mkdir()
    (tmp_path / "requirements").symlink_to(REQUIREMENTS)
    assert doctor.main(["--root", str(tmp_path)]) == 1
    output = capsys.readouterr().out
    assert re.search(r"FAIL  virtual environment +missing\n +repair: make setup", output)


def test_scikit_learn_beside_escnn_is_reported() -> None:
    findings = list(doctor.forbidden({"numpy": "2.1.0", "scikit-learn": "1.7.0"}))
    assert [finding.passed for finding in findings] == [False, False]
    assert "uninstall -y scikit-learn" in findings[1].repair
