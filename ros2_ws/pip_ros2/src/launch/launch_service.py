# SPDX-License-Identifier: MIT
"""The loop that visits entities, handles events, and ends the launch."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import traceback
from collections.abc import Iterable, Iterator

from . import logging as launch_logging
from ._launch_resources import ProcessFailure
from ._outside_subset import OutsideSubsetError
from .event import Event
from .event_handler import BaseEventHandler
from .events.shutdown import Shutdown
from .launch_context import LaunchContext
from .launch_description import LaunchDescription
from .launch_description_entity import LaunchDescriptionEntity
from .utilities import normalize_to_list_of_entities

STOP_STEP_S = 5.0


class LaunchService:
    """Runs launch descriptions until all is done, or until it is told to end."""

    def __init__(
        self,
        *,
        argv: Iterable[str] | None = None,
        noninteractive: bool = False,
        debug: bool = False,
    ) -> None:
        self.__context = LaunchContext(argv=argv, noninteractive=noninteractive)
        self.__debug = debug
        self.__included: list[LaunchDescription] = []
        self.__pending: set[asyncio.Future[None]] = set()
        self.__return_code = 0
        self.__shutting_down = False
        self.__interrupted = False
        self.__logger = launch_logging.get_logger()

    @property
    def context(self) -> LaunchContext:
        """The launch context."""
        return self.__context

    @property
    def failures(self) -> list[ProcessFailure]:
        """Processes that did not start, or died without being asked to (not part of ROS's API)."""
        return list(self.__context._resources.failures)

    def include_launch_description(self, launch_description: LaunchDescription) -> None:
        """Add a description to visit when the service runs."""
        if not isinstance(launch_description, LaunchDescription):
            raise TypeError(f"expected a LaunchDescription, got {launch_description!r}")
        self.__included.append(launch_description)

    def emit_event(self, event: Event) -> None:
        """Queue an event; may be called from any thread."""
        loop = self.__running_loop()
        if loop is None:
            self.__context.emit_event_sync(event)  # handled when the service runs
        else:
            loop.call_soon_threadsafe(self.__context.emit_event_sync, event)

    def shutdown(self, force_sync: bool = False) -> None:
        """Ask the service to end, if it runs; may be called from any thread."""
        if force_sync:
            raise OutsideSubsetError("LaunchService.shutdown(force_sync=True)")
        loop = self.__running_loop()
        if loop is not None:
            loop.call_soon_threadsafe(
                self.__begin_shutdown, "LaunchService.shutdown() called", False
            )

    def run(self, *, shutdown_when_idle: bool = True) -> int:
        """Run to the end and return 0, or 1 if the launch itself failed."""
        return asyncio.run(self.run_async(shutdown_when_idle=shutdown_when_idle))

    async def run_async(self, *, shutdown_when_idle: bool = True) -> int:
        """Run to the end, from a coroutine; return 0, or 1 if the launch itself failed."""
        loop = asyncio.get_running_loop()
        self.__context._set_asyncio_loop(loop)
        self.__return_code = 0
        try:
            with self.__signals_handled(loop):
                self.__visit_included()
                await self.__run_loop(shutdown_when_idle)
                await self.__stop_leftovers()
        finally:
            self.__context._resources.close()
            self.__context._set_asyncio_loop(None)
        return self.__return_code

    async def __run_loop(self, shutdown_when_idle: bool) -> None:
        while True:
            event = self.__context._next_event()
            if event is not None:
                self.__handle(event)
                # Let background tasks run between events, so that none can starve.
                await asyncio.sleep(0)
                continue
            self.__pending = {future for future in self.__pending if not future.done()}
            if not self.__pending:
                if self.__shutting_down:
                    return
                if shutdown_when_idle:
                    self.__begin_shutdown("idle", False)
                    continue
            waiter = asyncio.ensure_future(self.__context._wait_for_event())
            await asyncio.wait({waiter, *self.__pending}, return_when=asyncio.FIRST_COMPLETED)
            waiter.cancel()

    def __visit_included(self) -> None:
        for description in self.__included:
            self.__guarded_visit([description])

    def __handle(self, event: Event) -> None:
        if isinstance(event, Shutdown):
            self.__shutting_down = True
            self.__context._set_is_shutdown(True)
        for handler in self.__context._event_handlers:
            self.__context._push_locals()
            try:
                if handler.matches(event):
                    self.__react(handler, event)
            except Exception as error:
                self.__fail(error)
            finally:
                self.__context._pop_locals()

    def __react(self, handler: BaseEventHandler, event: Event) -> None:
        entities = handler.handle(event, self.__context)
        if entities is not None:
            self.__visit(normalize_to_list_of_entities(entities))

    def __guarded_visit(self, entities: Iterable[LaunchDescriptionEntity]) -> None:
        self.__context._push_locals()
        try:
            self.__visit(entities)
        except Exception as error:
            self.__fail(error)
        finally:
            self.__context._pop_locals()

    def __visit(self, entities: Iterable[LaunchDescriptionEntity]) -> None:
        """Visit entities and what they yield, depth first, in order."""
        for entity in entities:
            yielded = entity.visit(self.__context)
            future = entity.get_asyncio_future()
            if future is not None:
                self.__pending.add(future)
            if yielded is not None:
                self.__visit(yielded)

    def __fail(self, error: Exception) -> None:
        """Report an error of the launch itself and end the launch."""
        self.__return_code = 1
        self.__logger.error(f"Caught exception in launch (see debug for traceback): {error}")
        if self.__debug:
            self.__logger.error("".join(traceback.format_exception(error)))
        self.__begin_shutdown(f"exception in launch: {error}", False)

    def __begin_shutdown(self, reason: str, due_to_sigint: bool) -> None:
        if not self.__shutting_down:
            self.__shutting_down = True
            self.__context._set_is_shutdown(True)
            self.__context.emit_event_sync(Shutdown(reason=reason, due_to_sigint=due_to_sigint))

    async def __stop_leftovers(self) -> None:
        """Stop processes whose parent, started by us, ended without them."""
        resources = self.__context._resources
        for step in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            waits = []
            for child in list(resources.running):
                if not child.group_is_alive():
                    child.close_streams()
                    resources.release(child)
                    continue
                self.__logger.warning(
                    f"process group [{child.pid}] outlived its first process, sending '{step.name}'"
                )
                child.send_signal(step)
                waits.append(child.wait_until_group_is_gone(STOP_STEP_S))
            await asyncio.gather(*waits)

    @contextlib.contextmanager
    def __signals_handled(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        before = {number: signal.getsignal(number) for number in handled}
        for number in handled:
            loop.add_signal_handler(number, self.__on_signal, number)
        try:
            yield
        finally:
            for number in handled:
                loop.remove_signal_handler(number)
                signal.signal(number, before[number])

    def __on_signal(self, number: signal.Signals) -> None:
        what = "ctrl-c (SIGINT)" if number == signal.SIGINT else number.name
        if self.__interrupted:
            self.__logger.warning(f"user interrupted with {what} again, ignoring...")
            return
        self.__interrupted = True
        self.__logger.warning(f"user interrupted with {what}")
        self.__begin_shutdown(what, number == signal.SIGINT)

    def __running_loop(self) -> asyncio.AbstractEventLoop | None:
        try:
            return self.__context.asyncio_loop
        except RuntimeError:
            return None
