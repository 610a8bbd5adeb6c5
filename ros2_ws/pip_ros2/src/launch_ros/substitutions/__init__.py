# SPDX-License-Identifier: MIT
"""The substitutions of the subset, under ROS's names."""

from __future__ import annotations

from launch._outside_subset import refuse_missing_names

from .executable_in_package import ExecutableInPackage
from .find_package import FindPackagePrefix, FindPackageShare

__all__ = ["ExecutableInPackage", "FindPackagePrefix", "FindPackageShare"]

__getattr__ = refuse_missing_names(
    __name__, __all__, ("FindPackage", "Parameter", "RewrittenYaml", "find_package")
)
