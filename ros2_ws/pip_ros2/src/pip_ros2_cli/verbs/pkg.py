# SPDX-License-Identifier: MIT
"""Packages that the ament index knows: list, prefix, executables."""

from __future__ import annotations

import argparse
import os

from ament_index_python.packages import get_packages_with_prefixes

from ..console import out
from ..packages import executables_of, prefix_of, share_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(title="verbs", required=True, metavar="verb")
    listing = verbs.add_parser("list", help="list the packages")
    listing.set_defaults(run=_list)
    prefix = verbs.add_parser("prefix", help="print the prefix of a package")
    prefix.add_argument("package_name", help="name of the package")
    prefix.add_argument("--share", action="store_true", help="print its share folder instead")
    prefix.set_defaults(run=_prefix)
    executables = verbs.add_parser("executables", help="list the executables of packages")
    executables.add_argument("package_name", nargs="?", help="name of one package")
    executables.add_argument("--full-path", action="store_true", help="print full paths")
    executables.set_defaults(run=_executables)


def _list(options: argparse.Namespace) -> None:
    for package in sorted(get_packages_with_prefixes()):
        out(package)


def _prefix(options: argparse.Namespace) -> None:
    find = share_of if options.share else prefix_of
    out(find(options.package_name))


def _executables(options: argparse.Namespace) -> None:
    named = options.package_name
    for package in [named] if named else sorted(get_packages_with_prefixes()):
        for path in executables_of(package):
            out(path if options.full_path else f"{package} {os.path.basename(path)}")
