# SPDX-License-Identifier: MIT
"""Look packages, their launch files and executables up, with helpful errors."""

from __future__ import annotations

import os

from ament_index_python.packages import get_package_prefix, get_package_share_directory
from launch.substitutions import SubstitutionFailure
from launch_ros.substitutions import executable_in_package
from launch_ros.substitutions.find_package import find_package

from .errors import CommandError

LAUNCH_FILE_ENDINGS = ("launch.py", "launch.xml", "launch.yaml", "launch.yml")


def prefix_of(package: str) -> str:
    """Return the prefix of a package; an unknown name gets similar names suggested."""
    try:
        return find_package(package, get_package_prefix)
    except SubstitutionFailure as error:
        raise CommandError(f"Package not found: {error}") from None


def share_of(package: str) -> str:
    """Return the share folder of a package."""
    try:
        return find_package(package, get_package_share_directory)
    except SubstitutionFailure as error:
        raise CommandError(f"Package not found: {error}") from None


def executables_of(package: str) -> list[str]:
    """Return the paths of the executables of a package."""
    prefix_of(package)
    return executable_in_package.executables_of(package)


def executable_path(package: str, executable: str) -> str:
    """Return the path of an executable; an unknown name gets the package's own listed."""
    prefix_of(package)
    try:
        return executable_in_package.executable_path(package, executable)
    except SubstitutionFailure as error:
        raise CommandError(f"No executable found: {error}") from None


def launch_files_of(package: str) -> list[str]:
    """Return the paths of the launch files of a package, sorted."""
    return sorted(
        os.path.join(root, name)
        for root, _, names in os.walk(share_of(package))
        for name in names
        if name.endswith(LAUNCH_FILE_ENDINGS)
    )


def launch_file_path(package: str, name: str) -> str:
    """Return the path of a launch file of a package; an unknown name gets them all listed."""
    share = share_of(package)
    found = [os.path.join(root, name) for root, _, names in os.walk(share) if name in names]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandError(
            f"file '{name}' was found more than once in the share directory of package "
            f"'{package}': {', '.join(sorted(found))}; give one of these paths instead"
        )
    available = ", ".join(sorted({os.path.basename(path) for path in launch_files_of(package)}))
    raise CommandError(
        f"file '{name}' was not found in the share directory of package '{package}' which is at "
        f"'{share}'. Launch files of the package: {available or 'none'}"
    )
