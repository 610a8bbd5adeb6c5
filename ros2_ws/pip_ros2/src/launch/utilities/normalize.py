# SPDX-License-Identifier: MIT
"""Bring what a launch file may write into one form: lists of substitutions, lists of entities."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..launch_description_entity import LaunchDescriptionEntity
from ..some_substitutions_type import SomeSubstitutionsType
from ..substitution import Substitution

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


def is_a_subclass(obj: object, entity_type: type) -> bool:
    """Return whether the object is an instance, or the class itself a subclass, of the type."""
    return isinstance(obj, entity_type) or (isinstance(obj, type) and issubclass(obj, entity_type))


def ensure_argument_type(
    argument: object,
    types: type | Iterable[Any],
    argument_name: str,
    caller: str | None = None,
) -> None:
    """Raise TypeError unless the argument is an instance (or subclass) of one of the types."""
    allowed = (types,) if isinstance(types, type) else tuple(types)
    if any(is_a_subclass(argument, allowed_type) for allowed_type in allowed):
        return
    names = ", ".join(getattr(t, "__name__", str(t)) for t in allowed)
    where = f"{caller}: " if caller else ""
    raise TypeError(
        f"{where}'{argument_name}' must be of type {names}; got {argument!r} "
        f"of type {type(argument).__name__}"
    )


def normalize_to_list_of_substitutions(subs: SomeSubstitutionsType) -> list[Substitution]:
    """Return text, a substitution or a sequence of both as a list of substitutions."""
    from ..substitutions.text_substitution import TextSubstitution

    if isinstance(subs, str):
        return [TextSubstitution(text=subs)]
    if isinstance(subs, Substitution):
        return [subs]
    if not isinstance(subs, Iterable):
        raise TypeError(
            f"expected text, a Substitution or a list of both; got {subs!r} "
            f"of type {type(subs).__name__}"
        )
    parts: list[Substitution] = []
    for part in subs:
        if isinstance(part, str):
            parts.append(TextSubstitution(text=part))
        elif isinstance(part, Substitution):
            parts.append(part)
        else:
            raise TypeError(
                f"a list that stands for text may hold only text and Substitutions; "
                f"got {part!r} of type {type(part).__name__}"
            )
    return parts


def perform_substitutions(context: LaunchContext, subs: Iterable[Substitution]) -> str:
    """Return the concatenated text of the substitutions in the context."""
    return "".join(context.perform_substitution(sub) for sub in subs)


def normalize_to_list_of_entities(entities: object) -> list[LaunchDescriptionEntity]:
    """Return one entity or an iterable of entities as a list; anything else is a TypeError."""
    if isinstance(entities, LaunchDescriptionEntity):
        return [entities]
    if isinstance(entities, Iterable) and not isinstance(entities, (str, bytes)):
        checked = list(entities)
        for entity in checked:
            if not isinstance(entity, LaunchDescriptionEntity):
                raise TypeError(
                    f"expected actions or other launch entities; got {entity!r} "
                    f"of type {type(entity).__name__}"
                )
        return checked
    raise TypeError(
        f"expected an action or a list of actions; got {entities!r} "
        f"of type {type(entities).__name__}"
    )
