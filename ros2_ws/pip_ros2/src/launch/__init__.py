# SPDX-License-Identifier: MIT
"""A subset of ROS 2's launch, for environments in which ROS comes from PyPI.

Same names and semantics as ROS's launch 3.4. What is not here is refused by name; see the
package's README for the list.
"""

from __future__ import annotations

from . import actions, conditions, event_handlers, events, logging, substitutions
from . import launch_description_sources as launch_description_sources
from ._outside_subset import install_submodule_refusal, refuse_missing_names
from .action import Action
from .condition import Condition
from .event import Event
from .event_handler import EventHandler
from .invalid_launch_file_error import InvalidLaunchFileError
from .launch_context import LaunchContext
from .launch_description import LaunchDescription
from .launch_description_entity import LaunchDescriptionEntity
from .launch_description_source import LaunchDescriptionSource
from .launch_service import LaunchService
from .some_entities_type import SomeEntitiesType
from .some_substitutions_type import SomeSubstitutionsType, SomeSubstitutionsType_types_tuple
from .substitution import Substitution

__all__ = [
    "Action",
    "Condition",
    "Event",
    "EventHandler",
    "InvalidLaunchFileError",
    "LaunchContext",
    "LaunchDescription",
    "LaunchDescriptionEntity",
    "LaunchDescriptionSource",
    "LaunchService",
    "SomeEntitiesType",
    "SomeSubstitutionsType",
    "SomeSubstitutionsType_types_tuple",
    "Substitution",
    "actions",
    "conditions",
    "event_handlers",
    "events",
    "launch_description_sources",
    "logging",
    "substitutions",
]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    ("LaunchIntrospector", "SomeActionsType", "descriptions", "frontend", "launch_introspector"),
)

install_submodule_refusal()
