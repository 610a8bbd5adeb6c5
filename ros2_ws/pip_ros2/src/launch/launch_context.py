# SPDX-License-Identifier: MIT
"""The state of a running launch: configurations, environment, locals, handlers, events."""

from __future__ import annotations

import asyncio
import collections
import os
from collections.abc import Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from .event import Event
from .event_handler import BaseEventHandler
from .substitution import Substitution

if TYPE_CHECKING:
    from ._launch_resources import LaunchResources


class _Locals:
    """Attribute access to the locals of the event being handled."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__["_values"] = values

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(
                f"context.locals has no '{name}'; available are: "
                f"{', '.join(sorted(self.__dict__['_values'])) or 'none'}"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("context.locals is changed through context.extend_locals()")


class LaunchContext:
    """What entities see of the launch while they are visited.

    Launch configurations are text by name. The environment is the process's own `os.environ`,
    as in ROS, so that code in launch files sees what SetEnvironmentVariable did.
    """

    def __init__(self, *, argv: Iterable[str] | None = None, noninteractive: bool = False) -> None:
        self.__argv = list(argv) if argv is not None else []
        self.__noninteractive = noninteractive
        self.__launch_configurations: dict[str, str] = {}
        self.__launch_configurations_stack: list[dict[str, str]] = []
        self.__environment_at_start = dict(os.environ)
        self.__environment_stack: list[dict[str, str]] = []
        self.__locals: dict[str, Any] = {}
        self.__locals_stack: list[dict[str, Any]] = []
        self.__event_handlers: collections.deque[BaseEventHandler] = collections.deque()
        self.__events: collections.deque[Event] = collections.deque()
        self.__event_added: asyncio.Event | None = None
        self.__asyncio_loop: asyncio.AbstractEventLoop | None = None
        self.__is_shutdown = False
        self.__resources: LaunchResources | None = None

    @property
    def argv(self) -> list[str]:
        """Arguments given to the LaunchService."""
        return self.__argv

    @property
    def noninteractive(self) -> bool:
        """Whether no terminal is attached."""
        return self.__noninteractive

    @property
    def is_shutdown(self) -> bool:
        """Whether the launch has begun to end."""
        return self.__is_shutdown

    @property
    def launch_configurations(self) -> dict[str, str]:
        """Launch configurations by name."""
        return self.__launch_configurations

    @property
    def environment(self) -> MutableMapping[str, str]:
        """The environment that processes inherit."""
        return os.environ

    @property
    def locals(self) -> Any:
        """Values of the event being handled, such as `context.locals.event`."""
        return _Locals(self.__locals)

    @property
    def asyncio_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the running launch."""
        if self.__asyncio_loop is None:
            raise RuntimeError("the launch is not running: it has no asyncio loop yet")
        return self.__asyncio_loop

    def perform_substitution(self, sub: Substitution) -> str:
        """Return the text of one substitution."""
        return sub.perform(self)

    def extend_locals(self, extensions: Mapping[str, Any]) -> None:
        """Add or replace locals."""
        self.__locals.update(extensions)

    def get_locals_as_dict(self) -> dict[str, Any]:
        """Return a copy of the locals."""
        return dict(self.__locals)

    def emit_event_sync(self, event: Event) -> None:
        """Queue an event; it is handled after the present one."""
        if not isinstance(event, Event):
            raise TypeError(f"only launch events can be emitted, got {event!r}")
        self.__events.append(event)
        if self.__event_added is not None:
            self.__event_added.set()

    async def emit_event(self, event: Event) -> None:
        """Queue an event, from a coroutine."""
        self.emit_event_sync(event)

    def register_event_handler(
        self, event_handler: BaseEventHandler, *, append: bool = False
    ) -> None:
        """Add a handler: before the others, as in ROS, unless `append`."""
        if append:
            self.__event_handlers.append(event_handler)
        else:
            self.__event_handlers.appendleft(event_handler)

    def unregister_event_handler(self, event_handler: BaseEventHandler) -> None:
        """Remove a handler."""
        self.__event_handlers.remove(event_handler)

    # What follows is for the launch service and the scoping actions.

    @property
    def _event_handlers(self) -> tuple[BaseEventHandler, ...]:
        return tuple(self.__event_handlers)

    @property
    def _resources(self) -> LaunchResources:
        if self.__resources is None:
            from ._launch_resources import LaunchResources

            self.__resources = LaunchResources()
        return self.__resources

    def _set_asyncio_loop(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.__asyncio_loop = loop
        self.__event_added = asyncio.Event() if loop is not None else None
        if self.__event_added is not None and self.__events:
            self.__event_added.set()

    def _set_is_shutdown(self, state: bool) -> None:
        self.__is_shutdown = state

    def _next_event(self) -> Event | None:
        return self.__events.popleft() if self.__events else None

    def _has_events(self) -> bool:
        return bool(self.__events)

    async def _wait_for_event(self) -> None:
        if self.__event_added is None:
            raise RuntimeError("the launch is not running: it has no asyncio loop yet")
        await self.__event_added.wait()
        self.__event_added.clear()

    def _push_locals(self) -> None:
        self.__locals_stack.append(dict(self.__locals))

    def _pop_locals(self) -> None:
        self.__locals = self.__locals_stack.pop()

    def _replace_locals(self, values: Mapping[str, Any]) -> None:
        self.__locals = dict(values)

    def _push_launch_configurations(self) -> None:
        self.__launch_configurations_stack.append(dict(self.__launch_configurations))

    def _pop_launch_configurations(self) -> None:
        self._replace_launch_configurations(self.__launch_configurations_stack.pop())

    def _replace_launch_configurations(self, values: Mapping[str, str]) -> None:
        # In place: entities may hold a reference to the dictionary.
        kept = dict(values)
        self.__launch_configurations.clear()
        self.__launch_configurations.update(kept)

    def _push_environment(self) -> None:
        self.__environment_stack.append(dict(os.environ))

    def _pop_environment(self) -> None:
        self._replace_environment(self.__environment_stack.pop())

    def _reset_environment(self) -> None:
        self._replace_environment(self.__environment_at_start)

    def _replace_environment(self, values: Mapping[str, str]) -> None:
        kept = dict(values)
        os.environ.clear()
        os.environ.update(kept)
