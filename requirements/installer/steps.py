# SPDX-License-Identifier: MIT
"""The steps of setup in order: what each one does, depends on, and how it is known to be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import python_env, ros, stamps, workspace
from .commands import run, say
from .layout import Layout, Profile
from .system_packages import install_system_packages, require_tools, wanted_packages

# The short lists, in the order of their installation, and what the user reads about each.
PINS = {
    "build": "pip and setuptools",
    "core": "packages of the core",
    "robot": "packages of the robot side",
    "training": "packages for training (compiles py3nj and lie_learn)",
    "dev": "packages for tests and checks",
    "colcon": "colcon",
    "ros": "ROS 2 Jazzy wheels",
    "cluster": "packages for clusters (Ray, SLURM)",
    "docs": "packages for the documentation site",
    "console": "packages for the operator's console in the browser",
}
# Lists that are installed when they are asked for; from then on they follow the lock.
EXTRAS = {
    "cluster": "also Ray and SLURM (cluster.txt)",
    "docs": "also what builds the documentation site (docs.txt)",
    "console": "also the operator's console in the browser (console.txt)",
}


@dataclass(frozen=True)
class Context:
    """What every step may look at."""

    layout: Layout
    profile: Profile
    ros_prefix: Path | None  # prefix of a sourced ROS 2; None: its wheels are installed
    environment: dict[str, str]  # for the commands that are run
    base_python: Path
    interrupted: bool  # the last run did not end by itself
    extras: frozenset[str] = frozenset()  # those of EXTRAS that are asked for


@dataclass(frozen=True)
class Step:
    """One step: done if its stamp carries the present key and `is_there` finds its result."""

    name: str
    title: str
    key: Callable[[], str]
    act: Callable[[Path], None]  # takes the path of the log
    is_there: Callable[[], bool] = lambda: True
    inside_environment: bool = True  # its result vanishes with the virtual environment


def plan(context: Context) -> list[Step]:
    """The steps that lead from a fresh machine to a built workspace."""
    left_out = {"training", "dev"} if context.profile is Profile.ROBOT else set()
    if context.ros_prefix is not None:
        left_out.add("ros")
    left_out |= EXTRAS.keys() - context.extras - installed_extras(context.layout)
    lists = [_list(context, name) for name in PINS if name not in left_out]
    # Torch goes first, so that nothing else chooses its build.
    steps = [_system(context), _environment(context), lists[0], _torch(context), *lists[1:]]
    if context.ros_prefix is None:
        steps.append(_cmake_repair(context))
    return [*steps, _own_packages(context), _workspace(context)]


def installed_extras(layout: Layout) -> set[str]:
    """Extras that were asked for once."""
    return {name for name in EXTRAS if (layout.stamps / f"{name}.json").exists()}


def _system(context: Context) -> Step:
    apt_list = context.layout.requirements / "apt.txt"
    names = wanted_packages(apt_list, context.profile, context.base_python)

    def act(log: Path) -> None:
        install_system_packages(names, log)
        require_tools(context.profile)

    return Step(
        "system",
        "Debian packages and compilers",
        lambda: stamps.digest(names),
        act,
        inside_environment=False,
    )


def _environment(context: Context) -> Step:
    layout = context.layout
    wanted = python_env.wanted_identity(layout, context.ros_prefix)
    return Step(
        "environment",
        f"virtual environment (Python {wanted['python_version']})",
        lambda: stamps.digest(sorted(wanted.values())),
        lambda log: python_env.make_environment(layout, wanted, log, context.environment),
        lambda: python_env.environment_is_usable(layout, wanted),
    )


def _list(context: Context, name: str) -> Step:
    file = context.layout.requirements / f"{name}.txt"
    return Step(
        name,
        PINS[name],
        lambda: _pins_key(context, name),
        lambda log: _pip(context, ["-r", file], log),
    )


def _torch(context: Context) -> Step:
    lines = (context.layout.requirements / "robot.txt").read_text(encoding="utf-8").splitlines()
    requirement = next(line.split()[0] for line in lines if line.startswith("torch=="))
    return Step(
        "torch",
        f"{requirement} (the largest download)",
        lambda: stamps.digest([requirement]),
        lambda log: _pip(context, [requirement], log),
    )


def _pip(context: Context, arguments: list[str | Path], log: Path) -> None:
    """Install with pip, in the versions of the lock."""
    layout = context.layout
    broken = python_env.drop_broken_packages(layout, thorough=context.interrupted)
    if broken:
        say(f"      half-installed, installing again: {', '.join(broken)}")
    pip = [str(layout.python), "-m", "pip", "install", "--no-compile", "--progress-bar", "off"]
    lock = layout.requirements / "constraints.txt"
    run([*pip, *arguments, "--constraint", lock], log, context.environment)


def _pins_key(context: Context, *names: str) -> str:
    files = [context.layout.requirements / f"{name}.txt" for name in (*names, "constraints")]
    return stamps.digest([*files, str(context.ros_prefix)])


def _cmake_repair(context: Context) -> Step:
    return Step(
        "cmake_paths",
        "CMake paths of the ROS wheels",
        lambda: _pins_key(context, "ros", "core"),
        lambda log: ros.repair_cmake_paths(context.layout, log, context.environment),
    )


def _own_packages(context: Context) -> Step:
    layout = context.layout
    projects = workspace.editable_projects(layout, context.profile, context.ros_prefix)
    files = [path for project in projects for path in workspace.manifests(project)]
    return Step(
        "own_packages",
        "our packages for plain Python",
        lambda: stamps.digest([*files, *workspace.EDITABLE]),
        lambda log: workspace.install_editable(layout, projects, log, context.environment),
    )


def _workspace(context: Context) -> Step:
    layout, profile = context.layout, context.profile

    def key() -> str:
        packages = sorted(workspace.find_packages(layout, profile).items())
        return stamps.digest(
            part for name, path in packages for part in (name, workspace.package_digest(path))
        )

    return Step(
        "workspace",
        "colcon workspace ros2_ws",
        key,
        lambda log: workspace.build_workspace(layout, profile, log, context.environment),
        lambda: workspace.workspace_is_built(layout, profile),
    )
