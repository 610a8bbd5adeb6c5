# SPDX-License-Identifier: MIT
"""Law 8: layers. Imports have one direction, between packages and inside equi_rl.

The law is data in requirements/architecture/law.py; the imports are read from the sources.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from architecture import draw, law
from architecture.imports import (
    INTERFACES,
    REPOSITORY,
    Edge,
    Module,
    all_modules,
    between,
    cycles,
    import_edges,
    imports_in,
    modules_of,
    package_folders,
)
from architecture.sizes import line_count, modules_in, product_folders

PACKAGES = package_folders()
EDGES = import_edges(all_modules())


def broken_by(importer: str, imported: str) -> list[str]:
    """What the law says about one more import."""
    return law.broken_laws([Edge(importer, imported, 1)], PACKAGES)


def package_pairs(edges: list[Edge]) -> set[tuple[str, str]]:
    return set(between(edges, {name: name for name in [*PACKAGES, INTERFACES]}))


def test_every_package_is_read_and_has_its_place_in_the_law() -> None:
    assert {name for name in law.MAY_IMPORT if "." not in name} == set(PACKAGES)
    rooms = {path.name for path in PACKAGES["equi_rl"].iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(law.TRAINING_ROOMS)
    assert len(EDGES) > 1000


def test_no_import_breaks_a_law() -> None:
    assert law.broken_laws(EDGES, PACKAGES) == []


def test_no_package_imports_itself_through_others() -> None:
    assert cycles(package_pairs(EDGES)) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_folders_of_a_package_have_one_direction(package: str) -> None:
    folders = [path.name for path in PACKAGES[package].iterdir() if path.is_dir()]
    pairs = between(EDGES, {f"{package}.{name}": name for name in folders})
    assert cycles(set(pairs)) == []


def test_every_exception_of_the_law_is_used() -> None:
    for prefix, allowed in law.MAY_IMPORT.items():
        if "." in prefix:
            used = [edge for edge in EDGES if f"{edge.importer}.".startswith(f"{prefix}.")]
            for name in allowed:
                assert any(f"{edge.imported}.".startswith(f"{name}.") for edge in used), (
                    f"{prefix} no longer imports {name}: take the exception out of the law"
                )


def test_the_tools_that_stand_for_ros_know_nothing_of_ours() -> None:
    modules = [
        module
        for folder in (REPOSITORY / "ros2_ws/pip_ros2/src").iterdir()
        for module in modules_of(folder)
    ]
    imported = {edge.imported.partition(".")[0] for edge in import_edges(modules)}
    assert "launch" in imported
    assert imported & {*PACKAGES, INTERFACES} == set()


@pytest.mark.parametrize(
    ("importer", "imported", "reason"),
    [
        ("equi_core.action", "equi_rl.envs", "none of ours"),
        ("equi_core.action", "geometry_msgs.msg", "without ROS"),
        ("equi_ros.qos", "equi_control.driver", "allowed are equi_core"),
        ("ur_emulator.arms", "equi_core.contract", "allowed are equi_core.geometry"),
        ("ur_emulator.arms", "rclpy", "without ROS"),
        ("equi_control.driver.driver", "equi_policy.session", "allowed are equi_core"),
        ("equi_cell_sim.camera_node", "equi_calibration.synthetic", "allowed are equi_core"),
        ("equi_cell_sim.camera_node", "equi_control.driver", "allowed are equi_core"),
        ("equi_cell_sim.camera_node", "equi_policy.policy_node", "allowed are equi_core"),
        ("equi_calibration.solve.bundle_adjustment", "equi_rl.sim.world", "allowed are equi_core"),
        ("equi_calibration.synthetic.cell", "equi_rl.envs", "equi_rl.sim"),
        ("equi_evaluation.report", "equi_system_tests.faults", "allowed are equi_core"),
        ("equi_rl.export.exporter", "equi_policy.deployed_policy", "allowed are equi_core"),
        ("equi_rl.sim.world", "equi_rl.envs.base", "sim is not above envs"),
        ("equi_rl.envs.base", "equi_rl.experts", "envs is not above experts"),
        ("equi_rl.nets.networks", "equi_rl.agents.sac", "nets is not above agents"),
        ("equi_rl.training.trainer", "equi_rl.cli.train", "training is not above cli"),
        ("equi_rl.training.trainer", "equi_rl.carflag.env", "only by results and cli"),
        ("equi_rl.sim.world", "equi_rl.helpers.x", "no place in TRAINING_LEVELS"),
        ("equi_control.driver.driver", "rclpy.node", "allowed only in *_node"),
        ("equi_control.servo.loop", "rtde_control", "allowed only in equi_control.rtde.rtde_link"),
        ("equi_policy.deployed_policy", "escnn.nn", "allowed only in equi_rl"),
        ("equi_evaluation.report", "pybullet", "allowed only in equi_rl"),
        ("equi_core.contract", "torch", "torch is allowed only in"),
    ],
)
def test_an_edge_that_points_back_is_found(importer: str, imported: str, reason: str) -> None:
    (found,) = broken_by(importer, imported)
    assert found.startswith(f"{importer}:1 imports {imported}: ")
    assert reason in found


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("equi_rl.cli.train", "equi_rl.carflag.trainer"),
        ("equi_calibration.collect.rtde_arm", "equi_control.rtde.rtde_link"),
        ("equi_calibration.synthetic.cell", "equi_rl.sim.raycast"),
        ("equi_system_tests.faults.rig", "equi_control.driver.driver"),
        ("equi_policy.policy_node", "rclpy"),
        ("equi_evaluation.ros_recording", "rclpy"),
        ("equi_ros.qos", "rclpy.qos"),
    ],
)
def test_an_edge_along_the_law_is_allowed(importer: str, imported: str) -> None:
    assert broken_by(importer, imported) == []


def test_a_cycle_between_packages_is_found() -> None:
    forward = Edge("equi_control.driver", "equi_core.action", 1)
    aside = Edge("equi_policy.session", "equi_core.action", 1)
    assert cycles(package_pairs([forward, aside])) == []
    back = Edge("equi_core.action", "equi_control.driver", 1)
    assert cycles(package_pairs([forward, aside, back])) == ["equi_control", "equi_core"]


def test_imports_are_found_wherever_they_are_and_however_they_are_written(tmp_path: Path) -> None:
    package = tmp_path / "equi_rl"
    (package / "nets").mkdir(parents=True)
    (package / "nets" / "__init__.py").write_text("from . import layers\nfrom ..sim import arm\n")
    (package / "nets" / "layers.py").write_text(
        "import numpy.linalg as la\n"
        "from .config import Config\n"
        "def late():\n"
        "    from ..sim.arm import Arm\n"
        "    from equi_rl import nets\n"
        "if TYPE_CHECKING:\n"
        "    import equi_core.contract\n"
    )
    known = frozenset({"equi_rl.nets", "equi_rl.nets.layers", "equi_rl.nets.config"})
    found = {
        name: {(edge.imported, edge.line) for edge in imports_in(Module(name, path), known)}
        for name, path in [
            ("equi_rl.nets", package / "nets" / "__init__.py"),
            ("equi_rl.nets.layers", package / "nets" / "layers.py"),
        ]
    }
    assert found["equi_rl.nets"] == {("equi_rl.nets.layers", 1), ("equi_rl.sim", 2)}
    assert found["equi_rl.nets.layers"] == {
        ("numpy.linalg", 1),
        ("equi_rl.nets.config", 2),
        ("equi_rl.sim.arm", 4),
        ("equi_rl.nets", 5),
        ("equi_core.contract", 7),
    }


def test_no_folder_holds_more_modules_than_one_can_survey() -> None:
    folders = Counter(
        str(path.parent.relative_to(REPOSITORY))
        for folder in product_folders().values()
        for path in modules_in(folder)
    )
    assert len(folders) > 20
    crowded = {name: count for name, count in folders.items() if count > law.MAX_MODULES_PER_FOLDER}
    assert crowded == {}


def test_no_module_is_longer_than_one_can_read() -> None:
    paths = [path for folder in product_folders().values() for path in modules_in(folder)]
    long = {
        str(path.relative_to(REPOSITORY)): line_count(path)
        for path in paths
        if line_count(path) > law.MAX_LINES_PER_MODULE
    }
    assert long == {}


def test_the_drawing_shows_the_imports_of_today() -> None:
    drawing = draw.DRAWING.read_text(encoding="utf-8").replace("&gt;", ">")
    assert draw.description(draw.present_graphs()) in drawing, "run `make graph`"
