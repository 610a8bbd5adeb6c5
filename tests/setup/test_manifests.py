# SPDX-License-Identifier: MIT
"""Manifests: what a package imports is what its package.xml and setup.py declare, and no more."""

from __future__ import annotations

import ast
import configparser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from architecture import dependencies
from architecture.imports import package_folders

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = package_folders()
PROJECTS = sorted(
    [
        *(path.parent for path in (ROOT / "ros2_ws/src").glob("*/package.xml")),
        *(ROOT / name for name in ("training", "calibration", "models")),
    ]
)
PYTHON_PROJECTS = [path for path in PROJECTS if (path / "setup.py").is_file()]


def field(project: Path, name: str) -> str:
    """Text of an element of a package.xml."""
    return ElementTree.parse(project / "package.xml").findtext(name) or ""


def setup_argument(project: Path, name: str) -> object:
    """Value of a keyword of setup() that is written as a literal."""
    for node in ast.walk(ast.parse((project / "setup.py").read_text())):
        if isinstance(node, ast.keyword) and node.arg == name:
            return ast.literal_eval(node.value)
    return None


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_declares_what_it_imports_and_nothing_else(package: str) -> None:
    folder = PACKAGES[package]
    assert dependencies.differences(folder.parent, folder) == []


@pytest.mark.parametrize(
    ("source", "complaints"),
    [
        ("import scipy.spatial", ["package.xml lacks python3-scipy", "setup.py lacks scipy"]),
        ("from std_srvs.srv import Trigger", ["package.xml lacks std_srvs"]),
        ("def late():\n    import ruckig", ["setup.py lacks ruckig"]),
        ("import equi_core.contract", ["package.xml lacks equi_core", "setup.py lacks equi_core"]),
        ("from equi_interfaces.msg import RobotState", ["package.xml lacks equi_interfaces"]),
        ("import json, sys", []),
    ],
)
def test_an_undeclared_import_is_found(source: str, complaints: list[str], tmp_path: Path) -> None:
    package = a_package(tmp_path, "", "")
    (package / "module.py").write_text(source)
    assert dependencies.differences(tmp_path, package) == complaints


def test_an_import_of_a_launch_file_counts(tmp_path: Path) -> None:
    package = a_package(tmp_path, "", "")
    (tmp_path / "launch").mkdir()
    (tmp_path / "launch" / "a.launch.py").write_text("from launch_ros.actions import Node")
    assert dependencies.differences(tmp_path, package) == ["package.xml lacks launch_ros"]


def test_a_declaration_that_nothing_needs_is_found(tmp_path: Path) -> None:
    package = a_package(tmp_path, "<exec_depend>python3-numba</exec_depend>", '"numba<1"')
    assert dependencies.differences(tmp_path, package) == [
        "package.xml names python3-numba, which nothing imports",
        "setup.py names numba, which nothing imports",
    ]


def test_a_library_without_a_line_in_the_table_is_refused(tmp_path: Path) -> None:
    package = a_package(tmp_path, "", "")
    (package / "module.py").write_text("import flask")
    with pytest.raises(KeyError, match="flask: give it a line in LIBRARIES"):
        dependencies.differences(tmp_path, package)


def a_package(project: Path, depends: str, requires: str) -> Path:
    """A package whose manifests declare these."""
    (project / "package.xml").write_text(f"<package><name>x</name>{depends}</package>")
    (project / "setup.py").write_text(f"setup(install_requires=[{requires}])")
    (project / "some_package").mkdir()
    (project / "some_package" / "__init__.py").touch()
    return project / "some_package"


def test_what_rosdep_does_not_know_is_in_one_documented_pip_line() -> None:
    robot = {name: path for name, path in PACKAGES.items() if name != "equi_rl"}
    page = (ROOT / "ros2_ws/docs/deployment.md").read_text()
    assert f"pip install {' '.join(dependencies.pip_line(robot))}" in page
    training = set(dependencies.pip_line(PACKAGES)) - set(dependencies.pip_line(robot))
    assert f"pip install {' '.join(sorted(training))}" in page


@pytest.mark.parametrize("project", PYTHON_PROJECTS, ids=lambda path: path.name)
def test_package_xml_and_setup_py_tell_the_same(project: Path) -> None:
    assert setup_argument(project, "description") == field(project, "description")
    assert setup_argument(project, "maintainer") == field(project, "maintainer")
    assert setup_argument(project, "author") == field(project, "author")
    assert setup_argument(project, "license") == field(project, "license") == "MIT"
    name = field(project, "name")
    assert (project / "resource" / name).is_file()
    scripts = configparser.ConfigParser()
    scripts.read(project / "setup.cfg")
    # Where `ros2 run` and launch files look for executables.
    assert scripts["develop"]["script_dir"] == f"$base/lib/{name}"
    assert scripts["install"]["install_scripts"] == f"$base/lib/{name}"


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_the_maintainers_are_those_of_the_citation_and_no_invented_person(project: Path) -> None:
    authors = "The equi-rl-ur5 authors"
    assert f"- name: {authors}" in (ROOT / "CITATION.cff").read_text()
    assert field(project, "maintainer") == field(project, "author") == authors


@pytest.mark.parametrize("project", PROJECTS, ids=lambda path: path.name)
def test_a_package_has_a_changelog_in_the_form_of_ros(project: Path) -> None:
    bar, title, same_bar, _, newest, *entries = (project / "CHANGELOG.rst").read_text().splitlines()
    assert title == f"Changelog for package {field(project, 'name')}"
    assert bar == same_bar == "^" * len(title)
    assert newest == "Forthcoming" or newest.startswith(field(project, "version"))
    assert any(line.startswith("* ") for line in entries)


@pytest.mark.parametrize("package", PACKAGES)
def test_colcon_test_runs_the_fast_tests_of_a_package(package: str) -> None:
    project = PACKAGES[package].parent
    config = configparser.ConfigParser()
    config.read(project / "setup.cfg")
    chosen = config["tool:pytest"]
    tests = (project / chosen["testpaths"]).resolve()
    assert tests.parent == ROOT / "tests"
    assert list(tests.rglob("test_*.py")) != []
    for folder in chosen["pythonpath"].split():
        assert (project / folder).is_dir()
    assert '-m "not slow and not ros and not hardware"' in chosen["addopts"]
    # What makes colcon choose pytest.
    extras = setup_argument(project, "extras_require")
    assert isinstance(extras, dict)
    assert "pytest" in extras["test"]
