# SPDX-License-Identifier: MIT
"""The base class of everything a launch description may contain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .launch_context import LaunchContext


class LaunchDescriptionEntity:
    """Something that is visited while launching and may yield further entities."""

    def visit(self, context: LaunchContext) -> Sequence[LaunchDescriptionEntity] | None:
        """Do the entity's work and return the entities to visit next."""
        raise NotImplementedError(f"{type(self).__name__} does not implement visit()")

    def describe(self) -> str:
        """Return a short text that names the entity in messages."""
        return repr(self)

    def describe_sub_entities(self) -> Sequence[LaunchDescriptionEntity]:
        """Return the entities that are visited for certain, as far as known before launching."""
        return []

    def describe_conditional_sub_entities(
        self,
    ) -> Sequence[tuple[str, Iterable[LaunchDescriptionEntity]]]:
        """Return (condition, entities) pairs that are visited only when the condition holds."""
        return []

    def get_asyncio_future(self) -> asyncio.Future[None] | None:
        """Return the future that ends when the entity's work in the background has ended."""
        return None
