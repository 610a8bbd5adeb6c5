"""Our own packages: installed for plain Python, and built by colcon for ROS."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from . import stamps
from .commands import run
from .layout import Layout, Profile, SetupError
from .python_env import identity_of

# Files whose content decides what is built; of the others (launch, config, ...) only the names
# matter, because a symlinked install follows their edits. Python modules do not matter at all.
_CONTENT = re.compile(
    r"(package\.xml|CMakeLists\.txt|setup\.py|setup\.cfg|pyproject\.toml|.*\.(msg|srv|action))$"
)
_SKIPPED = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "test"}
INTERFACES = "equi_interfaces"
# A path entry instead of an import hook: the folder `launch` that many a ROS package puts on the
# path would come before the hook and hide the package `launch`.
EDITABLE = ("--config-settings", "editable_mode=compat")
BUILT_BY = ".environment"


def find_packages(roots: list[Path]) -> dict[str, Path]:
    """ROS packages below the folders, by name."""
    found = {}
    for root in roots:
        for manifest in sorted(root.rglob("package.xml")):
            match = re.search(
                r"<name>\s*([a-z0-9_]+)\s*</name>", manifest.read_text(encoding="utf-8")
            )
            if match:
                found[match[1]] = manifest.parent
    return found


def package_digest(package: Path) -> str:
    """Hash of whatever makes a rebuild of one package necessary."""
    parts: list[str | bytes | Path] = []
    for folder, subfolders, names in os.walk(package):
        subfolders[:] = sorted(
            name for name in subfolders if name not in _SKIPPED and not name.endswith(".egg-info")
        )
        place = Path(folder)
        in_python_package = (place / "__init__.py").exists() or place.name == package.name != ""
        for name in sorted(names):
            path = place / name
            if _CONTENT.match(name):
                parts += [str(path.relative_to(package)), path]
            elif not (place != package and in_python_package and name.endswith(".py")):
                parts.append(str(path.relative_to(package)))
    return stamps.digest(parts)


def editable_projects(layout: Layout, profile: Profile) -> list[Path]:
    """Our projects that plain Python should find without a sourced workspace."""
    projects = [layout.workspace / "src" / "equi_core", layout.root / "calibration"]
    if profile is Profile.FULL:
        projects.append(layout.root / "training")
    return [
        project
        for project in projects
        if (project / "setup.py").exists() or (project / "pyproject.toml").exists()
    ]


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
    """Build the changed packages with colcon.

    Raises:
        SetupError: A package did not build; the others were still built.
    """
    packages = find_packages(layout.package_roots(profile))
    _forget_foreign_builds(layout)
    _forget_removed_packages(layout, set(packages))
    digests = {name: package_digest(path) for name, path in packages.items()}
    record = layout.workspace / "build" / "digests.json"
    done = stamps.read(record)
    changed = [
        name
        for name, value in digests.items()
        if done.get(name) != value or not (layout.workspace / "install" / name).is_dir()
    ]
    if INTERFACES in changed:
        changed = list(packages)
    for name in changed:
        done.pop(name, None)
    stamps.write_atomically(record, done)
    if changed:
        _colcon(layout, profile, changed, log, environment)
    stamps.write_atomically(record, digests)


def workspace_is_built(layout: Layout, profile: Profile) -> bool:
    """True if every package of the source tree has its place in the installed workspace."""
    install = layout.workspace / "install"
    names = find_packages(layout.package_roots(profile))
    return (install / "local_setup.bash").exists() and all(
        (install / name).is_dir() for name in names
    )


def _colcon(
    layout: Layout, profile: Profile, names: list[str], log: Path, environment: Mapping[str, str]
) -> None:
    command: list[str | Path] = [layout.venv / "bin" / "colcon", "--log-base", "log", "build"]
    command += ["--symlink-install", "--continue-on-error", "--executor", "sequential"]
    command += ["--event-handlers", "console_direct+", "desktop_notification-"]
    command += ["--base-paths", *layout.package_roots(profile), "--packages-select", *names]
    command += ["--cmake-args", "-DBUILD_TESTING=OFF", f"-DPython3_EXECUTABLE={layout.python}"]
    try:
        run(command, log, environment, cwd=layout.workspace)
    except SetupError as error:
        text = log.read_text(encoding="utf-8", errors="replace")
        failed = re.findall(r"^Failed\s+<<< (\w+)", text, flags=re.MULTILINE)
        if failed:
            raise SetupError(
                f"colcon could not build: {', '.join(dict.fromkeys(failed))}.\n{error}",
                error.way_out,
            ) from error
        raise


def _forget_foreign_builds(layout: Layout) -> None:
    """Remove build results that belong to another environment: their caches name its paths."""
    marker = layout.workspace / "build" / BUILT_BY
    wanted = identity_of(layout).get("id", "")
    if marker.is_file() and marker.read_text(encoding="utf-8") == wanted:
        return
    for name in ("build", "install"):
        shutil.rmtree(layout.workspace / name, ignore_errors=True)
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.write_text(wanted, encoding="utf-8")


def _forget_removed_packages(layout: Layout, names: set[str]) -> None:
    for base in ("build", "install"):
        folder = layout.workspace / base
        for package in folder.iterdir() if folder.is_dir() else ():
            if package.is_dir() and not package.name.startswith(".") and package.name not in names:
                shutil.rmtree(package)
