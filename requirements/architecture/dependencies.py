# SPDX-License-Identifier: MIT
"""What a package imports against what its manifests declare.

`package.xml` names rosdep keys and ROS packages, `setup.py` names distributions of PyPI. Both lists
are compared with the import statements, in both directions. A library without a rosdep key is in
`setup.py` alone, and in the one `pip` line of ros2_ws/docs/deployment.md.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from .imports import INTERFACES, Module, imports_in, modules_of, package_folders

NO_KEY = ""
"""rosdep knows no key for the library: it comes by pip."""


@dataclass(frozen=True)
class Library:
    """A library as its two package managers call it."""

    rosdep: str
    pip: str


# By the name that is imported. Keys looked up in rosdep/python.yaml of ros/rosdistro, August 2026.
LIBRARIES = {
    "PIL": Library("python3-pil", "pillow"),
    "cv2": Library("python3-opencv", "opencv-python-headless"),
    "dashboard_client": Library(NO_KEY, "ur_rtde"),
    "escnn": Library(NO_KEY, "escnn"),
    "fastapi": Library(NO_KEY, "nicegui"),  # comes with it
    "gymnasium": Library("python3-gymnasium-pip", "gymnasium"),
    "imageio_ffmpeg": Library(NO_KEY, "imageio-ffmpeg"),
    "jinja2": Library("python3-jinja2", "jinja2"),
    "matplotlib": Library("python3-matplotlib", "matplotlib"),
    "mcap": Library(NO_KEY, "mcap"),
    "mcap_ros2": Library("mcap-ros2-support", "mcap-ros2-support"),
    "nicegui": Library(NO_KEY, "nicegui"),
    "numba": Library("python3-numba", "numba"),
    "numpy": Library("python3-numpy", "numpy"),
    "open3d": Library("python3-open3d-pip", "open3d"),
    "pybullet": Library("python3-pybullet-pip", "pybullet"),
    "pybullet_utils": Library("python3-pybullet-pip", "pybullet"),
    "pytest": Library("python3-pytest", "pytest"),
    "ray": Library(NO_KEY, "ray"),
    "rich": Library("python3-rich", "rich"),
    "rtde_control": Library(NO_KEY, "ur_rtde"),
    "rtde_io": Library(NO_KEY, "ur_rtde"),
    "rtde_receive": Library(NO_KEY, "ur_rtde"),
    "ruckig": Library(NO_KEY, "ruckig"),  # the ROS package of that name has no Python module
    "safetensors": Library(NO_KEY, "safetensors"),
    "scipy": Library("python3-scipy", "scipy"),
    "submitit": Library(NO_KEY, "submitit"),
    "torch": Library("python3-torch", "torch"),
    "typing_extensions": Library("python3-typing-extensions", "typing-extensions"),
    "tyro": Library(NO_KEY, "tyro"),
    "yaml": Library("python3-yaml", "pyyaml"),
}

# Declared although nothing imports it: what is started as a process, or loaded by another library.
NOT_IMPORTED = {
    "equi_bringup": {
        *("equi_calibration", "equi_cell_sim", "equi_console", "equi_control", "equi_description"),
        *("equi_evaluation", "equi_models", "equi_perception", "equi_policy", "ur_emulator"),
    },
    "ur_emulator": {"ur_rtde"},  # its tests talk to the emulator through it
    "equi_rl": {"python3-tensorboard-pip", "tensorboard"},  # torch.utils.tensorboard
}
EVERY_PACKAGE = {"python3-pytest", "pytest"}  # what `colcon test` runs


@dataclass(frozen=True)
class Declared:
    """Names in the two manifests of a package."""

    package_xml: frozenset[str]
    setup_py: frozenset[str]


def imported_names(package: Path, ours: frozenset[str]) -> set[str]:
    """Top-level names that the modules and launch files of a package import, without Python's own.

    Args:
        package: the folder with `__init__.py`.
        ours: names of our packages.
    """
    launch_files = sorted((package.parent / "launch").glob("*.launch.py"))
    modules = [*modules_of(package), *(Module(path.stem, path) for path in launch_files)]
    names = {
        edge.imported.partition(".")[0] for module in modules for edge in imports_in(module, ours)
    }
    return names - set(sys.stdlib_module_names) - {package.name, ""}


def wanted(names: set[str], ours: frozenset[str]) -> Declared:
    """What the manifests of a package must name for the imports of its modules.

    Raises:
        KeyError: a library that is not in LIBRARIES.
    """
    package_xml, setup_py = set(), set()
    for name in names:
        if name in LIBRARIES:
            package_xml.add(LIBRARIES[name].rosdep)
            setup_py.add(LIBRARIES[name].pip)
        elif name in ours:
            package_xml.add(name)
            if name != INTERFACES:
                setup_py.add(name)
        elif _is_of_ros(name):
            package_xml.add(name)
        else:
            raise KeyError(f"{name}: give it a line in LIBRARIES of {__name__}")
    return Declared(frozenset(package_xml - {NO_KEY}), frozenset(setup_py))


def declared(project: Path) -> Declared:
    """What the manifests in a package's project folder name."""
    root = ElementTree.parse(project / "package.xml").getroot()
    depends = {node.text or "" for node in root if node.tag.endswith("depend")}
    return Declared(frozenset(depends), frozenset(_setup_requirements(project / "setup.py")))


def differences(project: Path, package: Path) -> list[str]:
    """Every name that is missing in a manifest, or stands there for nothing."""
    ours = frozenset({*package_folders(), INTERFACES})
    needed, found = wanted(imported_names(package, ours), ours), declared(project)
    extra = NOT_IMPORTED.get(package.name, set()) | EVERY_PACKAGE
    return [
        *(f"package.xml lacks {name}" for name in sorted(needed.package_xml - found.package_xml)),
        *(f"setup.py lacks {name}" for name in sorted(needed.setup_py - found.setup_py)),
        *(
            f"package.xml names {name}, which nothing imports"
            for name in sorted(found.package_xml - needed.package_xml - extra)
        ),
        *(
            f"setup.py names {name}, which nothing imports"
            for name in sorted(found.setup_py - needed.setup_py - extra)
        ),
    ]


def pip_line(packages: dict[str, Path]) -> list[str]:
    """Distributions without a rosdep key that some packages import, sorted."""
    ours = frozenset({*package_folders(), INTERFACES})
    names = {name for folder in packages.values() for name in imported_names(folder, ours)}
    found = {LIBRARIES[name] for name in names if name in LIBRARIES}
    return sorted(library.pip for library in found if library.rosdep == NO_KEY)


def _is_of_ros(name: str) -> bool:
    plain = ("rclpy", "launch", "launch_ros", "ament_index_python", "tf2_ros")
    return name in plain or name.endswith(("_msgs", "_srvs", "_interfaces"))


def _setup_requirements(path: Path) -> Iterator[str]:
    """Names in install_requires and extras_require of a setup.py, which is not run."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg in ("install_requires", "extras_require"):
            value = ast.literal_eval(node.value)
            lists = value.values() if isinstance(value, dict) else [value]
            for requirement in (text for texts in lists for text in texts):
                yield re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0]
