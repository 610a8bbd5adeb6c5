# SPDX-License-Identifier: MIT
"""Our own packages: installed for plain Python, and built by colcon for ROS."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from . import stamps
from .commands import run
from .layout import Layout, Profile, SetupError
from .python_env import identity_of

MANIFESTS = ("package.xml", "CMakeLists.txt", "setup.py", "setup.cfg", "pyproject.toml")
INTERFACES = (".msg", ".srv", ".action")
# Symlinked folders (and models): a new file needs a build, an edit does not.
DATA = ("launch", "config", "resource", "results")
# A path entry instead of an import hook: the folder `launch` that many a ROS package puts on the
# path would come before the hook and hide the package `launch`.
EDITABLE = ("--config-settings", "editable_mode=compat")
BUILT_BY = ".environment"


def package_roots(layout: Layout, profile: Profile) -> list[Path]:
    """Folders in which colcon looks for packages."""
    roots = [layout.workspace / "src", layout.root / "models", layout.root / "calibration"]
    if profile is Profile.FULL:
        roots += [layout.root / "training", layout.root / "tests" / "fixtures"]
    if not identity_of(layout).get("ros_prefix"):
        # Message packages that PyPI lacks; a real ROS brings its own.
        roots.append(layout.workspace / "pip_ros2" / "interfaces")
    return [root for root in roots if root.is_dir()]


def find_packages(layout: Layout, profile: Profile) -> dict[str, Path]:
    """Folders of the ROS packages, by name."""
    found = {}
    for root in package_roots(layout, profile):
        for manifest in sorted(root.rglob("package.xml")):
            match = re.search(r"<name>\s*(\w+)\s*</name>", manifest.read_text(encoding="utf-8"))
            if match:
                found[match[1]] = manifest.parent
    return found


def package_digest(package: Path) -> str:
    """Hash of what makes a build of the package necessary; edits of Python modules do not."""
    return stamps.digest(_build_inputs(package))


def _build_inputs(package: Path) -> Iterator[str | Path]:
    for path in sorted(package.rglob("*")):
        if path.name in MANIFESTS or path.suffix in INTERFACES:
            yield from (str(path.relative_to(package)), path)
    yield from sorted(str(path.relative_to(package)) for path in package.glob("*/contract.json"))
    for folder in DATA:
        files = (package / folder).rglob("*.*")
        yield from sorted(str(path.relative_to(package)) for path in files if path.suffix != ".pyc")


def editable_projects(layout: Layout, profile: Profile, ros_prefix: Path | None) -> list[Path]:
    """Our projects that plain Python should find without a sourced workspace."""
    source = layout.workspace / "src"
    ros_free = ("equi_core", "ur_emulator", "equi_control")  # the last one for equi-conformance
    projects = [*(source / name for name in ros_free), layout.root / "calibration"]
    if profile is Profile.FULL:
        projects.append(layout.root / "training")
    if ros_prefix is None:
        # `launch`, `launch_ros` and `ros2`, written by us for where no real ROS provides them.
        projects.append(layout.workspace / "pip_ros2")
    return [project for project in projects if any(path.exists() for path in manifests(project))]


def manifests(project: Path) -> list[Path]:
    """Files that say how a project is installed."""
    return [project / name for name in ("setup.py", "setup.cfg", "pyproject.toml")]


def install_editable(
    layout: Layout, projects: list[Path], log: Path, environment: Mapping[str, str]
) -> None:
    """Install projects so that edits to their source are in effect at once."""
    targets = [word for project in projects for word in ("--editable", str(project))]
    if targets:
        pip: list[str | Path] = [layout.python, "-m", "pip", "install", "--no-deps", "--no-index"]
        run([*pip, "--no-build-isolation", *EDITABLE, *targets], log, environment)


def build_workspace(
    layout: Layout, profile: Profile, log: Path, environment: Mapping[str, str]
) -> None:
    """Build the changed packages with colcon; all of them after a change of the messages.

    Raises:
        SetupError: A package did not build; the others were still built.
    """
    packages = find_packages(layout, profile)
    _forget_what_is_not_ours(layout, set(packages))
    record = layout.workspace / "build" / "digests.json"
    digests = {name: package_digest(path) for name, path in packages.items()}
    done = stamps.read(record)
    changed = [
        name
        for name, value in digests.items()
        if done.get(name) != value or not (layout.workspace / "install" / name).is_dir()
    ]
    # A package's setup.py would find the links to files that are gone, and fail to install them.
    remove_dangling_links(layout.workspace / "build", changed)
    if "equi_interfaces" in changed:
        changed = list(packages)
    stamps.write_atomically(record, {name: done[name] for name in done if name not in changed})
    if changed:
        _colcon(layout, profile, changed, log, environment)
        remove_dangling_links(layout.workspace / "install", changed)
    stamps.write_atomically(record, digests)


def workspace_is_built(layout: Layout, profile: Profile) -> bool:
    """True if every package of the source tree has its place in the installed workspace."""
    install = layout.workspace / "install"
    return (install / "local_setup.bash").exists() and all(
        (install / name).is_dir() for name in find_packages(layout, profile)
    )


def _colcon(
    layout: Layout, profile: Profile, names: list[str], log: Path, environment: Mapping[str, str]
) -> None:
    command: list[str | Path] = [layout.venv / "bin" / "colcon", "--log-base", "log", "build"]
    command += ["--symlink-install", "--continue-on-error", "--executor", "sequential"]
    command += ["--event-handlers", "console_direct+", "desktop_notification-"]
    command += ["--base-paths", *package_roots(layout, profile), "--packages-select", *names]
    command += ["--cmake-args", "-DBUILD_TESTING=OFF", f"-DPython3_EXECUTABLE={layout.python}"]
    try:
        run(command, log, environment, cwd=layout.workspace)
    except SetupError as error:
        text = log.read_text(encoding="utf-8", errors="replace")
        failed = dict.fromkeys(re.findall(r"^Failed\s+<<< (\w+)", text, flags=re.MULTILINE))
        if not failed:
            raise
        raise SetupError(
            f"colcon could not build: {', '.join(failed)}.\n{error}", error.way_out
        ) from error


def remove_dangling_links(folder: Path, names: list[str]) -> None:
    """Remove links to files of packages that are gone."""
    for name in names:
        for path in sorted((folder / name).rglob("*")):
            if path.is_symlink() and not path.exists():
                path.unlink()


def _forget_what_is_not_ours(layout: Layout, names: set[str]) -> None:
    """Remove builds of another environment, whose caches name its paths, and removed packages."""
    build, install = layout.workspace / "build", layout.workspace / "install"
    marker = build / BUILT_BY
    wanted = identity_of(layout).get("id", "")
    if not marker.is_file() or marker.read_text(encoding="utf-8") != wanted:
        for folder in (build, install):
            shutil.rmtree(folder, ignore_errors=True)
        build.mkdir(parents=True)
        marker.write_text(wanted, encoding="utf-8")
    for path in [*build.glob("*"), *install.glob("*")]:
        if path.is_dir() and path.name not in names:
            shutil.rmtree(path)
