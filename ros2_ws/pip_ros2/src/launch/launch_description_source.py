# SPDX-License-Identifier: MIT
"""Where a launch description comes from: the base class of sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .some_substitutions_type import SomeSubstitutionsType
from .substitution import Substitution
from .utilities import normalize_to_list_of_substitutions, perform_substitutions

if TYPE_CHECKING:
    from .launch_context import LaunchContext
    from .launch_description import LaunchDescription


class LaunchDescriptionSource:
    """Loads a launch description from a location, once."""

    def __init__(self, location: SomeSubstitutionsType, *, method: str) -> None:
        self.__location = normalize_to_list_of_substitutions(location)
        self.__method = method
        self.__expanded_location: str | None = None
        self.__launch_description: LaunchDescription | None = None

    @property
    def method(self) -> str:
        """How the description is obtained, for messages."""
        return self.__method

    @property
    def location(self) -> str:
        """The path, as far as it is known already."""
        if self.__expanded_location is not None:
            return self.__expanded_location
        return " + ".join(sub.describe() for sub in self._location_substitutions)

    @property
    def _location_substitutions(self) -> list[Substitution]:
        return self.__location

    def get_launch_description(self, context: LaunchContext) -> LaunchDescription:
        """Return the description, loading it the first time."""
        if self.__launch_description is None:
            self.__expanded_location = perform_substitutions(context, self.__location)
            self.__launch_description = self._get_launch_description(self.__expanded_location)
        return self.__launch_description

    def try_get_launch_description_without_context(self) -> LaunchDescription | None:
        """Return the description, or None if its path is only known while launching."""
        from .launch_context import LaunchContext
        from .substitutions import SubstitutionFailure

        if self.__launch_description is not None:
            return self.__launch_description
        try:
            path = perform_substitutions(LaunchContext(), self.__location)
        except (SubstitutionFailure, LookupError):
            return None
        self.__expanded_location = path
        self.__launch_description = self._get_launch_description(path)
        return self.__launch_description

    def _get_launch_description(self, location: str) -> LaunchDescription:
        raise NotImplementedError(f"{type(self).__name__} cannot load {location}")
