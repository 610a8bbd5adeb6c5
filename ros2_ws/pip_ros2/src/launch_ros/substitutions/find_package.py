# SPDX-License-Identifier: MIT
"""Where a package is installed."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_prefix,
    get_package_share_directory,
    get_packages_with_prefixes,
)
from launch import LaunchContext, SomeSubstitutionsType, Substitution
from launch.substitutions import SubstitutionFailure
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions


def find_package(package: str, find: Callable[[str], str]) -> str:
    """Return what `find(package)` returns; an unknown name gets a message with similar names."""
    try:
        return find(package)
    except (PackageNotFoundError, ValueError) as error:
        near = difflib.get_close_matches(package, get_packages_with_prefixes(), n=3)
        hint = f"Did you mean {' or '.join(repr(name) for name in near)}? " if near else ""
        raise SubstitutionFailure(
            f"package '{package}' not found. {hint}AMENT_PREFIX_PATH names the prefixes that "
            "are searched; source the workspace that holds the package"
        ) from error


class _FindPackage(Substitution):
    """A folder of a package, found by its name."""

    def __init__(self, package: SomeSubstitutionsType) -> None:
        self.__package = normalize_to_list_of_substitutions(package)

    @property
    def package(self) -> list[Substitution]:
        """The package's name."""
        return self.__package

    def describe(self) -> str:
        """Return the name in the notation of launch files."""
        names = " + ".join(sub.describe() for sub in self.package)
        return f"{type(self).__name__}(pkg={names})"

    def find(self, package_name: str) -> str:
        """Return the folder of the package."""
        raise NotImplementedError

    def perform(self, context: LaunchContext) -> str:
        """Return the folder; raise SubstitutionFailure if there is no such package."""
        return find_package(perform_substitutions(context, self.package), self.find)


class FindPackagePrefix(_FindPackage):
    """The prefix into which the package is installed."""

    def find(self, package_name: str) -> str:
        """Return the prefix."""
        return str(get_package_prefix(package_name))


class FindPackageShare(_FindPackage):
    """The package's share folder: launch files, configuration, package.xml."""

    def find(self, package_name: str) -> str:
        """Return the share folder."""
        return str(get_package_share_directory(package_name))
