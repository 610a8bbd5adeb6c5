# SPDX-License-Identifier: MIT
"""The law of direction: who may import what. Data first, then the check that reads it.

A package may import itself and what `MAY_IMPORT` names for it; a longer name adds to a shorter one.
Whatever is not allowed is forbidden, so a new package starts with an entry here.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from .imports import INTERFACES, Edge, starts_with

NODE_SIDE = ("equi_core", INTERFACES, "equi_ros")

# Packages from the bottom to the top. A name with dots is a folder or module of a package.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "equi_core": (),
    "equi_ros": ("equi_core",),
    # A product of its own: without ROS, and of ours only where a UR5's joints and frames are.
    "ur_emulator": ("equi_core.geometry",),
    "equi_perception": NODE_SIDE,
    "equi_policy": NODE_SIDE,
    "equi_control": NODE_SIDE,
    "equi_evaluation": NODE_SIDE,
    "equi_description": NODE_SIDE,
    # The desk runs episodes through the evaluator and shows its records.
    "equi_console": (*NODE_SIDE, "equi_evaluation"),
    "equi_console.ros_arm_view": ("equi_perception",),  # reads clouds as perception does
    "equi_rl": ("equi_core",),
    # Knows neither the driver that moves the simulated arm nor the calibration of its cameras.
    "equi_cell_sim": (
        *NODE_SIDE,
        "ur_emulator",
        *("equi_rl.sim", "equi_rl.envs", "equi_rl.experts"),
    ),
    "equi_cell_sim.expert_policy_node": ("equi_policy",),
    "equi_calibration": ("equi_core",),
    "equi_calibration.collect": ("equi_ros",),  # its camera is a node
    "equi_calibration.collect.rtde_arm": ("equi_control.rtde",),
    "equi_calibration.synthetic": ("equi_cell_sim", "equi_rl.sim"),
    # Launch files run in the Python of `ros2`, which may have none of our libraries.
    "equi_bringup": ("equi_core", "equi_ros"),
    # Rehearsals and studies put everything together; nobody imports them.
    "equi_system_tests": (
        *NODE_SIDE,
        *("equi_perception", "equi_policy", "equi_control", "equi_evaluation"),
        *("equi_calibration", "equi_cell_sim", "equi_rl", "ur_emulator"),
    ),
}

# Folders of equi_rl from the bottom to the top: each may import those of the lines above its own.
TRAINING_LEVELS: tuple[tuple[str, ...], ...] = (
    ("sim", "cluster"),
    ("envs", "experts"),
    ("data",),
    ("nets",),
    ("agents",),
    ("training", "recurrent_sac"),
    ("audit", "bench", "export", "probe", "slac", "sweep"),
    ("carflag",),
    ("results",),
    ("cli", "api"),
)
CARFLAG_IMPORTERS = ("results", "cli")  # a domain of its own: robot learning does not know it

# Libraries, and the only modules that may import them (patterns of dotted names).
LIBRARIES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("rclpy",): ("*_node", "*.ros_*", "equi_ros", "equi_ros.*"),
    ("rtde_control", "rtde_receive", "rtde_io", "dashboard_client"): (
        "equi_control.rtde.rtde_link",
        "equi_control.rtde.measurement_link",  # of the conformance kit, which drives raw joints
    ),
    ("escnn", "gymnasium"): ("equi_rl.*",),
    ("pybullet",): ("equi_rl.*", "equi_cell_sim.*"),
    # A process that must start fast or run at 125 Hz loads no framework.
    ("torch",): ("equi_rl.*", "equi_policy.*", "equi_system_tests.*"),
    ("ray", "submitit"): ("equi_rl.cluster.*", "equi_rl.sweep.*"),  # an extra: cluster.txt
    ("open3d",): ("equi_perception.*", "equi_calibration.*"),
    ("nicegui", "fastapi"): ("equi_console.web.page*", "equi_console.web.server"),
}
# Packages without ROS: neither its client library nor its messages.
WITHOUT_ROS = ("equi_core", "ur_emulator", "equi_rl")
ROS_LIBRARIES = ("rclpy", "launch", "launch_ros", "ament_index_python", "*_msgs", "*_interfaces")

MAX_MODULES_PER_FOLDER = 15
MAX_LINES_PER_MODULE = 400


def broken_laws(edges: Iterable[Edge], packages: Iterable[str]) -> list[str]:
    """Every import that breaks a law, as `module:line imports name: why`."""
    ours = {*packages, INTERFACES}
    found = []
    for edge in edges:
        reason = _reason_against(edge, ours)
        if reason:
            found.append(f"{edge}: {reason}")
    return found


def _reason_against(edge: Edge, ours: set[str]) -> str:
    importer, imported = (name.partition(".")[0] for name in (edge.importer, edge.imported))
    if importer in WITHOUT_ROS and _matches(imported, ROS_LIBRARIES):
        return f"{importer} is without ROS"
    if imported not in ours:
        return _reason_against_library(edge)
    if importer == imported:
        return _reason_inside_training(edge) if importer == "equi_rl" else ""
    allowed = may_import(edge.importer)
    if any(starts_with(edge.imported, name) for name in allowed):
        return ""
    return f"allowed are {', '.join(allowed) or 'none of ours'}"


def may_import(module: str) -> tuple[str, ...]:
    """What a module may import of the other packages."""
    return tuple(
        name
        for prefix, names in MAY_IMPORT.items()
        if starts_with(module, prefix)
        for name in names
    )


def _reason_against_library(edge: Edge) -> str:
    library = edge.imported.partition(".")[0]
    for names, importers in LIBRARIES.items():
        if library in names and not _matches(edge.importer, importers):
            return f"{library} is allowed only in {', '.join(importers)}"
    return ""


def _reason_inside_training(edge: Edge) -> str:
    importer, imported = training_room(edge.importer), training_room(edge.imported)
    if importer == imported or not imported:
        return ""
    if not importer:  # the package itself offers the Python API, and nothing else
        return "" if imported == "api" else "equi_rl itself imports its api only"
    for room in (importer, imported):
        if room not in TRAINING_ROOMS:
            return f"equi_rl.{room} has no place in TRAINING_LEVELS"
    if imported == "carflag" and importer not in CARFLAG_IMPORTERS:
        return f"carflag is imported only by {' and '.join(CARFLAG_IMPORTERS)}"
    if level_of(imported) >= level_of(importer):
        return f"{importer} is not above {imported}"
    return ""


TRAINING_ROOMS = {room: level for level, rooms in enumerate(TRAINING_LEVELS) for room in rooms}


def training_room(module: str) -> str:
    """Folder of equi_rl that a module is in; empty for the package itself."""
    return module.split(".")[1] if "." in module else ""


def level_of(room: str) -> int:
    """Place of a folder of equi_rl in the order of imports, 0 at the bottom."""
    return TRAINING_ROOMS[room]


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
