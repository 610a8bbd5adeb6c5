"""The steps of setup in order: what each one does, depends on, and how it is known to be done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import python_env, ros, stamps, workspace
from .commands import run, say
from .layout import Layout, Profile
from .system_packages import install_system_packages, require_tools, wanted_packages

# Order matters: torch goes first, so that nothing else chooses its build.
ROBOT_LAYERS = ("core", "robot")
FULL_LAYERS = ("training", "dev")
PINS = ("build", "core", "robot", "training", "dev", "colcon", "ros")


@dataclass(frozen=True)
class Context:
    """What every step may look at."""

    layout: Layout
    profile: Profile
    ros_prefix: Path | None  # prefix of a sourced ROS 2; None: its wheels are installed
    environment: dict[str, str]  # for the commands that are run
    base_python: Path
    interrupted: bool  # the last run did not end by itself


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
    steps = [_system(context), _environment(context), _pip_tools(context)]
    steps.append(_torch(context))
    steps += [_layer(context, layer) for layer in ROBOT_LAYERS]
    if context.profile is Profile.FULL:
        steps += [_layer(context, layer) for layer in FULL_LAYERS]
    steps.append(_layer(context, "colcon"))
    if context.ros_prefix is None:
        steps += [_layer(context, "ros"), _cmake_repair(context)]
    steps += [_launch_tools(context), _own_packages(context), _workspace(context)]
    return steps


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


def _pip(context: Context, arguments: list[str], log: Path) -> None:
    """Install with pip, in the versions of the lock."""
    layout = context.layout
    broken = python_env.drop_broken_packages(layout, thorough=context.interrupted)
    if broken:
        say(f"      half-installed, installing again: {', '.join(broken)}")
    constraints = layout.requirements / "constraints.txt"
    command: list[str | Path] = [
        layout.python,
        "-m",
        "pip",
        "install",
        "--no-compile",
        "--progress-bar",
        "off",
        *arguments,
        "--constraint",
        constraints,
    ]
    run(command, log, context.environment)


def _pins_key(context: Context, *names: str) -> str:
    files = [context.layout.requirements / f"{name}.txt" for name in (*names, "constraints")]
    return stamps.digest([*files, str(context.ros_prefix)])


def _pip_tools(context: Context) -> Step:
    file = context.layout.requirements / "build.txt"
    return Step(
        "build",
        "pip and setuptools",
        lambda: _pins_key(context, "build"),
        lambda log: _pip(context, ["-r", str(file)], log),
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


_LAYER_TITLES = {
    "core": "packages of the core",
    "robot": "packages of the robot side",
    "training": "packages for training (compiles py3nj and lie_learn)",
    "dev": "packages for tests and checks",
    "colcon": "colcon",
    "ros": "ROS 2 Jazzy wheels",
}


def _layer(context: Context, layer: str) -> Step:
    file = context.layout.requirements / f"{layer}.txt"
    return Step(
        layer,
        _LAYER_TITLES[layer],
        lambda: _pins_key(context, layer),
        lambda log: _pip(context, ["-r", str(file)], log),
    )


def _cmake_repair(context: Context) -> Step:
    layout = context.layout

    def act(log: Path) -> None:
        changed = ros.repair_cmake_paths(layout, context.environment)
        log.write_text(f"{changed} CMake files repaired\n", encoding="utf-8")

    return Step(
        "cmake_paths",
        "CMake paths of the ROS wheels",
        lambda: _pins_key(context, "ros", "core"),
        act,
    )


def _launch_tools(context: Context) -> Step:
    """`launch`, `launch_ros` and `ros2`, written by us for where no real ROS provides them."""
    layout = context.layout
    project = layout.workspace / "pip_ros2"
    manifests = [project / "pyproject.toml", project / "setup.py", project / "setup.cfg"]

    def act(log: Path) -> None:
        if ros.can_import(layout, "launch_ros", context.environment):
            log.write_text("launch_ros of the sourced ROS 2 is used\n", encoding="utf-8")
        elif any(manifest.exists() for manifest in manifests):
            workspace.install_editable(layout, [project], log, context.environment)

    return Step(
        "launch_tools",
        "ros2 and launch",
        lambda: stamps.digest([*manifests, str(context.ros_prefix), *workspace.EDITABLE]),
        act,
    )


def _own_packages(context: Context) -> Step:
    layout = context.layout
    projects = workspace.editable_projects(layout, context.profile)
    names = ("setup.py", "setup.cfg", "pyproject.toml")
    return Step(
        "own_packages",
        "our packages for plain Python",
        lambda: stamps.digest(
            [*(project / name for project in projects for name in names), *workspace.EDITABLE]
        ),
        lambda log: workspace.install_editable(layout, projects, log, context.environment),
    )


def _workspace(context: Context) -> Step:
    layout, profile = context.layout, context.profile

    def key() -> str:
        packages = workspace.find_packages(layout.package_roots(profile))
        return stamps.digest(
            part
            for name, path in sorted(packages.items())
            for part in (name, workspace.package_digest(path))
        )

    return Step(
        "workspace",
        "colcon workspace ros2_ws",
        key,
        lambda log: workspace.build_workspace(layout, profile, log, context.environment),
        lambda: workspace.workspace_is_built(layout, profile),
    )
