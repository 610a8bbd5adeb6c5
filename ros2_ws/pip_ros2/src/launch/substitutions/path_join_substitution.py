# SPDX-License-Identifier: MIT
"""Path components joined by the separator of the platform."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..substitution import Substitution
from ..utilities import normalize_to_list_of_substitutions

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class PathJoinSubstitution(Substitution):
    """Joins components, each of them text or one substitution."""

    def __init__(self, substitutions: Iterable[str | Substitution]) -> None:
        if isinstance(substitutions, (str, Substitution)):
            raise TypeError(
                f"PathJoinSubstitution takes a list of components, got {substitutions!r}"
            )
        components = list(substitutions)
        if any(not isinstance(component, (str, Substitution)) for component in components):
            raise TypeError(
                f"PathJoinSubstitution: each component must be text or one Substitution, got "
                f"{components!r}; to build a component from parts, write the whole path as a "
                "list: [FindPackageShare('p'), '/config/', LaunchConfiguration('x'), '.yaml']"
            )
        if not components:
            raise ValueError("PathJoinSubstitution needs at least one component")
        self.__substitutions = normalize_to_list_of_substitutions(components)

    @property
    def substitutions(self) -> list[Substitution]:
        """The path components."""
        return self.__substitutions

    def describe(self) -> str:
        """Return the components in the notation of launch files."""
        return f"PathJoin({' + '.join(sub.describe() for sub in self.substitutions)})"

    def perform(self, context: LaunchContext) -> str:
        """Return the joined path."""
        return os.path.join(*(sub.perform(context) for sub in self.substitutions))
