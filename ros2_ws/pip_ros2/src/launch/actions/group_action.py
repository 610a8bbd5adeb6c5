# SPDX-License-Identifier: MIT
"""Several actions under one condition and in one scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..action import Action
from ..condition import Condition
from ..launch_description_entity import LaunchDescriptionEntity
from ..some_substitutions_type import SomeSubstitutionsType
from ..utilities import normalize_to_list_of_entities
from ._scoping import CloseScope, OpenScope, ResetLaunchConfigurations
from .set_launch_configuration import SetLaunchConfiguration

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class GroupAction(Action):
    """Visits its actions in order.

    Scoped (the default): changes of launch configurations and environment end with the group.
    Forwarding (the default): the group sees those of outside; otherwise it starts from the
    environment of the launch's start and only the given `launch_configurations`.
    """

    def __init__(
        self,
        actions: Iterable[Action],
        *,
        scoped: bool = True,
        forwarding: bool = True,
        launch_configurations: Mapping[SomeSubstitutionsType, SomeSubstitutionsType] | None = None,
        condition: Condition | None = None,
    ) -> None:
        super().__init__(condition=condition)
        if isinstance(actions, LaunchDescriptionEntity):
            raise TypeError(f"GroupAction takes a list of actions, got {actions!r}")
        for flag, name in ((scoped, "scoped"), (forwarding, "forwarding")):
            if not isinstance(flag, bool):
                raise TypeError(f"GroupAction: {name} must be a bool, got {flag!r}")
        configurations = {} if launch_configurations is None else launch_configurations
        settings = [SetLaunchConfiguration(name, value) for name, value in configurations.items()]
        inner = normalize_to_list_of_entities(actions)
        self.__entities: list[LaunchDescriptionEntity]
        if not scoped:
            self.__entities = [*settings, *inner]
        elif forwarding:
            self.__entities = [OpenScope(), *settings, *inner, CloseScope()]
        else:
            reset = ResetLaunchConfigurations(configurations)
            self.__entities = [OpenScope(), reset, *inner, CloseScope()]

    def get_sub_entities(self) -> Sequence[LaunchDescriptionEntity]:
        """Return the actions with what opens and closes their scope."""
        return self.__entities

    def execute(self, context: LaunchContext) -> Sequence[LaunchDescriptionEntity]:
        """Return the actions with what opens and closes their scope."""
        return self.__entities
