# SPDX-License-Identifier: MIT
"""Actions after a delay."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..action import Action
from ..condition import Condition
from ..event import Event
from ..event_handler import BaseEventHandler
from ..events.shutdown import Shutdown
from ..events.timer_event import TimerEvent
from ..launch_description_entity import LaunchDescriptionEntity
from ..some_entities_type import SomeEntitiesType
from ..some_substitutions_type import SomeSubstitutionsType, SomeSubstitutionsType_types_tuple
from ..utilities import ensure_argument_type, normalize_to_list_of_entities
from ..utilities.type_utils import normalize_typed_substitution, perform_typed_substitution

if TYPE_CHECKING:
    from ..launch_context import LaunchContext


class TimerAction(Action):
    """Visits its actions once, `period` seconds after it was visited itself.

    The end of the launch cancels it, unless `cancel_on_shutdown` is false.
    """

    def __init__(
        self,
        *,
        period: float | SomeSubstitutionsType,
        actions: Iterable[LaunchDescriptionEntity],
        cancel_on_shutdown: bool | SomeSubstitutionsType = True,
        condition: Condition | None = None,
    ) -> None:
        super().__init__(condition=condition)
        # An int is refused as ROS refuses it: write 5.0, not 5.
        ensure_argument_type(
            period, (float, *SomeSubstitutionsType_types_tuple), "period", "TimerAction"
        )
        if isinstance(period, str):
            period = float(period)
            warnings.warn(
                "TimerAction: give 'period' as a float or a substitution; text is deprecated",
                stacklevel=2,
            )
        self.__period = normalize_typed_substitution(period, float)
        self.__actions = normalize_to_list_of_entities(actions)
        self.__cancel_on_shutdown = normalize_typed_substitution(cancel_on_shutdown, bool)
        self.__locals: dict[str, Any] = {}
        self.__canceled = asyncio.Event()
        self.__completed: asyncio.Future[None] | None = None

    @property
    def period(self) -> Any:
        """The delay in seconds, a number or substitutions."""
        return self.__period

    @property
    def actions(self) -> list[LaunchDescriptionEntity]:
        """The actions to visit when the time has come."""
        return self.__actions

    def describe_conditional_sub_entities(
        self,
    ) -> Sequence[tuple[str, Iterable[LaunchDescriptionEntity]]]:
        """Return the actions, which are visited unless the timer is canceled."""
        return [(f"{self.__period} seconds pass without being canceled", self.__actions)]

    def cancel(self) -> None:
        """Cancel the timer; without effect once it has fired."""
        self.__canceled.set()

    def execute(self, context: LaunchContext) -> None:
        """Start the timer."""
        period_s = perform_typed_substitution(context, self.__period, float)
        self.__locals = context.get_locals_as_dict()
        self.__completed = context.asyncio_loop.create_future()
        cancel_on_shutdown = perform_typed_substitution(context, self.__cancel_on_shutdown, bool)
        context.register_event_handler(_TimerHandler(self, cancel_on_shutdown))
        if cancel_on_shutdown and context.is_shutdown:
            self.cancel()
        task = context.asyncio_loop.create_task(self.__wait_and_fire(context, period_s))
        task.add_done_callback(lambda _: self.__complete())

    def get_asyncio_future(self) -> asyncio.Future[None] | None:
        """Return the future that ends when the timer has fired or was canceled."""
        return self.__completed

    def _handle(self, context: LaunchContext) -> list[LaunchDescriptionEntity]:
        context.extend_locals(self.__locals)
        return self.__actions

    async def __wait_and_fire(self, context: LaunchContext, period_s: float) -> None:
        try:
            await asyncio.wait_for(self.__canceled.wait(), timeout=max(period_s, 0.0))
        except asyncio.TimeoutError:
            context.emit_event_sync(TimerEvent(timer_action=self))

    def __complete(self) -> None:
        if self.__completed is not None and not self.__completed.done():
            self.__completed.set_result(None)


class _TimerHandler(BaseEventHandler):
    """Yields the timer's actions when it fires; cancels it when the launch ends."""

    def __init__(self, timer: TimerAction, cancel_on_shutdown: bool) -> None:
        self.__timer = timer
        self.__cancel_on_shutdown = cancel_on_shutdown
        super().__init__(matcher=self.__is_meant)

    def __is_meant(self, event: Event) -> bool:
        if isinstance(event, TimerEvent):
            return event.timer_action is self.__timer
        return self.__cancel_on_shutdown and isinstance(event, Shutdown)

    def handle(self, event: Event, context: LaunchContext) -> SomeEntitiesType | None:
        """React to the end of the period or of the launch."""
        super().handle(event, context)
        context.unregister_event_handler(self)
        if isinstance(event, TimerEvent):
            return self.__timer._handle(context)
        self.__timer.cancel()
        return None
