# SPDX-License-Identifier: MIT
"""The path of an executable of a package."""

from __future__ import annotations

import os

from ament_index_python.packages import get_package_prefix
from launch import LaunchContext, SomeSubstitutionsType, Substitution
from launch.substitutions import SubstitutionFailure
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions

from .find_package import find_package


def executables_of(package: str) -> list[str]:
    """Return the paths of the package's executables, those `ros2 run` can start, sorted."""
    folder = os.path.join(find_package(package, get_package_prefix), "lib", package)
    if not os.path.isdir(folder):
        return []
    paths = [
        os.path.join(root, name) for root, _, names in os.walk(folder) for name in sorted(names)
    ]
    return sorted(path for path in paths if os.access(path, os.X_OK))


def executable_path(package: str, executable: str) -> str:
    """Return the path of one executable; SubstitutionFailure lists what there is instead."""
    folder = os.path.join(find_package(package, get_package_prefix), "lib", package)
    available = executables_of(package)
    path = os.path.join(folder, executable)
    if path in available:
        return path
    names = ", ".join(os.path.relpath(found, folder) for found in available) or "none"
    problem = "is not executable (chmod +x)" if os.path.isfile(path) else "not found"
    raise SubstitutionFailure(
        f"executable '{executable}' {problem} in the libexec directory '{folder}'. "
        f"Executables of package '{package}': {names}"
    )


class ExecutableInPackage(Substitution):
    """Finds `<prefix>/lib/<package>/<executable>`."""

    def __init__(self, executable: SomeSubstitutionsType, package: SomeSubstitutionsType) -> None:
        self.__executable = normalize_to_list_of_substitutions(executable)
        self.__package = normalize_to_list_of_substitutions(package)

    @property
    def executable(self) -> list[Substitution]:
        """The executable's name."""
        return self.__executable

    @property
    def package(self) -> list[Substitution]:
        """The package's name."""
        return self.__package

    def describe(self) -> str:
        """Return the names in the notation of launch files."""
        package = " + ".join(sub.describe() for sub in self.package)
        executable = " + ".join(sub.describe() for sub in self.executable)
        return f"ExecInPkg(pkg={package}, exec={executable})"

    def perform(self, context: LaunchContext) -> str:
        """Return the path; raise SubstitutionFailure if there is no such executable."""
        return executable_path(
            perform_substitutions(context, self.package),
            perform_substitutions(context, self.executable),
        )
