# SPDX-License-Identifier: MIT
"""Run a command and look after it to its end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import logging as launch_logging
from .._launch_resources import ProcessFailure
from .._process.child_process import AFTER_KILL_S, ChildProcess
from ..action import Action
from ..condition import Condition
from ..conditions.evaluate_condition_expression import evaluate_condition_expression
from ..event import Event
from ..event_handler import BaseEventHandler
from ..event_handlers.on_process_exit import OnProcessExit
from ..events.process import ProcessExited, ProcessStarted, ShutdownProcess, SignalProcess
from ..events.shutdown import Shutdown
from ..launch_description_entity import LaunchDescriptionEntity
from ..some_entities_type import SomeEntitiesType
from ..some_substitutions_type import SomeSubstitutionsType
from ..substitution import Substitution
from ..substitutions.launch_configuration import LaunchConfiguration
from ..utilities import (
    normalize_to_list_of_entities,
    normalize_to_list_of_substitutions,
    perform_substitutions,
)
from ..utilities.type_utils import normalize_typed_substitution, perform_typed_substitution
from ._executable import Executable

if TYPE_CHECKING:
    from ..launch_context import LaunchContext

OUTPUT_OVERRIDE = "OVERRIDE_LAUNCH_PROCESS_OUTPUT"
DEFAULT_OUTPUT_FORMAT = "[{this.process_description.final_name}] {line}"
DEFAULT_STEP_S = 5.0
SIGTERM_TIMEOUT = LaunchConfiguration("sigterm_timeout", default=5)
SIGKILL_TIMEOUT = LaunchConfiguration("sigkill_timeout", default=5)

OnExit = SomeEntitiesType | Callable[[ProcessExited, Any], SomeEntitiesType | None]


class ExecuteProcess(Action):
    """Starts a command in a session of its own, passes its output on, stops it with the launch.

    Stopping is SIGINT, after `sigterm_timeout` seconds SIGTERM, after `sigkill_timeout` more
    SIGKILL, each to the whole process group. `respawn` starts the command again whenever it ends
    while the launch goes on, at most `respawn_max_retries` times if that is not negative.
    """

    def __init__(
        self,
        *,
        cmd: Iterable[SomeSubstitutionsType],
        prefix: SomeSubstitutionsType | None = None,
        name: SomeSubstitutionsType | None = None,
        cwd: SomeSubstitutionsType | None = None,
        env: Mapping[SomeSubstitutionsType, SomeSubstitutionsType] | None = None,
        additional_env: Mapping[SomeSubstitutionsType, SomeSubstitutionsType] | None = None,
        shell: bool = False,
        sigterm_timeout: SomeSubstitutionsType = SIGTERM_TIMEOUT,
        sigkill_timeout: SomeSubstitutionsType = SIGKILL_TIMEOUT,
        emulate_tty: bool = False,
        output: SomeSubstitutionsType | Mapping[str, Any] = "log",
        output_format: str = DEFAULT_OUTPUT_FORMAT,
        cached_output: bool = False,
        log_cmd: bool = False,
        on_exit: OnExit | None = None,
        respawn: bool | SomeSubstitutionsType = False,
        respawn_delay: float | None = None,
        respawn_max_retries: int = -1,
        condition: Condition | None = None,
    ) -> None:
        super().__init__(condition=condition)
        self.__process_description = Executable(
            cmd=cmd, prefix=prefix, name=name, cwd=cwd, env=env, additional_env=additional_env
        )
        self.__shell = shell
        self.__sigterm_timeout = normalize_to_list_of_substitutions(sigterm_timeout)
        self.__sigkill_timeout = normalize_to_list_of_substitutions(sigkill_timeout)
        self.__emulate_tty = emulate_tty
        chosen = os.environ.get(OUTPUT_OVERRIDE, output)
        self.__output: Mapping[str, Any] | list[Substitution] = (
            chosen if isinstance(chosen, Mapping) else normalize_to_list_of_substitutions(chosen)
        )
        self.__output_format = output_format
        self.__cached: dict[str, list[str]] | None = (
            {"stdout": [], "stderr": []} if cached_output else None
        )
        self.__log_cmd = log_cmd
        self.__on_exit = (
            on_exit
            if on_exit is None or callable(on_exit)
            else list(normalize_to_list_of_entities(on_exit))
        )
        if self.__on_exit == []:
            raise TypeError(
                f"{type(self).__name__}: on_exit is an empty list, which ROS stumbles over when "
                "the process ends; leave it out"
            )
        self.__respawn = normalize_typed_substitution(respawn, bool)
        self.__respawn_delay = respawn_delay
        self.__respawn_max_retries = respawn_max_retries
        self.__respawn_retries = 0
        self.__executed = False
        self.__child: ChildProcess | None = None
        self.__return_code: int | None = None
        self.__process_details: dict[str, Any] | None = None
        self.__signals_sent: set[signal.Signals] = set()
        self.__stop_requested = asyncio.Event()
        self.__stop_task: asyncio.Task[None] | None = None
        self.__completed: asyncio.Future[None] | None = None

    @property
    def process_description(self) -> Executable:
        """Command, label, folder and environment."""
        return self.__process_description

    @property
    def cmd(self) -> list[list[Substitution]]:
        """The words of the command line."""
        return self.__process_description.cmd

    @property
    def name(self) -> str:
        """Label of the process, such as `talker-1`; empty before it was visited."""
        return self.__process_description.final_name

    @property
    def shell(self) -> bool:
        """Whether a shell runs the command."""
        return self.__shell

    @property
    def emulate_tty(self) -> bool:
        """Whether the command writes to a pseudo terminal."""
        return self.__emulate_tty

    @property
    def output(self) -> Mapping[str, Any] | list[Substitution]:
        """Where output goes."""
        return self.__output

    @property
    def process_details(self) -> dict[str, Any] | None:
        """What the process's events carry (name, cmd, cwd, env, pid); None before the start."""
        return self.__process_details

    @property
    def return_code(self) -> int | None:
        """The exit code of the last run, None while it has none."""
        return self.__return_code

    def get_stdout(self) -> str:
        """Return what the process wrote to stdout; needs `cached_output=True`."""
        return self.__cached_text("stdout")

    def get_stderr(self) -> str:
        """Return what the process wrote to stderr; needs `cached_output=True`."""
        return self.__cached_text("stderr")

    def get_sub_entities(self) -> Sequence[LaunchDescriptionEntity]:
        """Return the entities of `on_exit`."""
        return self.__on_exit if isinstance(self.__on_exit, list) else []

    def get_asyncio_future(self) -> asyncio.Future[None] | None:
        """Return the future that ends when the process has ended for good."""
        return self.__completed

    def execute(self, context: LaunchContext) -> None:
        """Expand the command and start it in the background."""
        self.__process_description.prepare(context)
        if self.__executed:
            raise RuntimeError(
                f"{type(self).__name__} action '{self.name}' is executed more than once; "
                "make a new action for each process"
            )
        self.__executed = True
        if context.is_shutdown:
            return
        self.__logger = launch_logging.get_logger(self.name)
        output = (
            self.__output
            if isinstance(self.__output, Mapping)
            else perform_substitutions(context, self.__output)
        )
        self.__loggers = launch_logging.get_output_loggers(self.name, output)
        respawn = perform_typed_substitution(context, self.__respawn, bool)
        emulate_tty = self.__wants_terminal(context)
        if self.__on_exit is not None:
            context.register_event_handler(
                OnProcessExit(target_action=self, on_exit=self.__on_exit)
            )
        context.register_event_handler(_StopAndSignalHandler(self))
        self.__completed = context.asyncio_loop.create_future()
        task = context.asyncio_loop.create_task(self.__run(context, respawn, emulate_tty))
        task.add_done_callback(self.__complete)

    async def __run(self, context: LaunchContext, respawn: bool, emulate_tty: bool) -> None:
        """Run the command, again and again if it is to be respawned."""
        while not self.__stop_requested.is_set():
            child = self.__start(context, emulate_tty)
            if child is None:
                break
            returncode = await child.wait()
            self.__announce_exit(context, child, returncode)
            if self.__stop_task is not None:
                await self.__stop_task
            if not child.group_is_alive():
                child.close_streams()
                context._resources.release(child)
            if not respawn or self.__stop_requested.is_set() or not self.__may_retry():
                self.__record_failure(context, returncode)
                break
            self.__respawn_retries += 1
            if self.__respawn_delay:
                await asyncio.wait(
                    {asyncio.ensure_future(self.__stop_requested.wait())},
                    timeout=self.__respawn_delay,
                )

    def __start(self, context: LaunchContext, emulate_tty: bool) -> ChildProcess | None:
        description = self.__process_description
        shown = " ".join(word for word in description.final_cmd if word.strip())
        if self.__log_cmd:
            self.__logger.info(
                f"process details: cmd='{shown}', cwd='{description.final_cwd}', custom_env?=True"
            )
        try:
            child = ChildProcess.start(
                description.final_cmd,
                cwd=description.final_cwd,
                env=description.final_env,
                shell=self.__shell,
                emulate_tty=emulate_tty,
                on_stdout=lambda line: self.__on_line("stdout", line),
                on_stderr=lambda line: self.__on_line("stderr", line),
            )
        except (OSError, ValueError) as error:
            reason = (
                f"{error.strerror}: '{error.filename}'" if isinstance(error, OSError) else error
            )
            self.__logger.error(f"process could not be started [cmd '{shown}']: {reason}")
            context._resources.failures.append(
                ProcessFailure(self.name, None, f"could not be started: {reason}")
            )
            return None
        context._resources.adopt(child)
        self.__child = child
        self.__return_code = None
        self.__process_details = {
            "action": self,
            "name": self.name,
            "cmd": description.final_cmd,
            "cwd": description.final_cwd,
            "env": description.final_env,
            "pid": child.pid,
        }
        self.__logger.info(f"process started with pid [{child.pid}]")
        context.emit_event_sync(ProcessStarted(**self.__process_details))
        return child

    def __announce_exit(self, context: LaunchContext, child: ChildProcess, returncode: int) -> None:
        self.__return_code = returncode
        shown = " ".join(word for word in self.__process_description.final_cmd if word.strip())
        if returncode == 0:
            self.__logger.info(f"process has finished cleanly [pid {child.pid}]")
        else:
            self.__logger.error(
                f"process has died [pid {child.pid}, exit code {returncode}, cmd '{shown}']."
            )
        if self.__process_details is not None:
            context.emit_event_sync(ProcessExited(returncode=returncode, **self.__process_details))

    def __record_failure(self, context: LaunchContext, returncode: int) -> None:
        """Note an end that nobody asked for, for the exit code of `ros2 launch`."""
        asked_for = self.__stop_requested.is_set() or context.is_shutdown
        by_our_signal = any(returncode == -number for number in self.__signals_sent)
        if returncode != 0 and not asked_for and not by_our_signal:
            reason = f"exit code {returncode}"
            context._resources.failures.append(ProcessFailure(self.name, returncode, reason))

    def __may_retry(self) -> bool:
        limit = self.__respawn_max_retries
        return limit < 0 or self.__respawn_retries < limit

    def _stop(self, context: LaunchContext) -> None:
        """Begin to stop the process; a second request changes nothing."""
        if self.__stop_requested.is_set():
            return
        self.__stop_requested.set()
        if self.__child is not None and self.__return_code is None:
            steps_s = (
                self.__timeout_s(context, self.__sigterm_timeout),
                self.__timeout_s(context, self.__sigkill_timeout),
            )
            self.__stop_task = context.asyncio_loop.create_task(
                self.__escalate(self.__child, *steps_s)
            )

    async def __escalate(
        self, child: ChildProcess, sigterm_after_s: float, sigkill_after_s: float
    ) -> None:
        base = f"process[{self.name}] failed to terminate"
        self._send_signal(signal.SIGINT)
        if await child.wait_until_group_is_gone(sigterm_after_s):
            return
        self.__logger.error(
            f"{base} '{sigterm_after_s:g}' seconds after receiving 'SIGINT', "
            "escalating to 'SIGTERM'"
        )
        self._send_signal(signal.SIGTERM)
        if await child.wait_until_group_is_gone(sigkill_after_s):
            return
        self.__logger.error(
            f"{base} '{sigterm_after_s + sigkill_after_s}' seconds after receiving 'SIGTERM', "
            "escalating to 'SIGKILL'"
        )
        self._send_signal(signal.SIGKILL)
        await child.wait_until_group_is_gone(AFTER_KILL_S)

    def _send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and its group, if any of it is left."""
        if self.__child is not None and self.__child.group_is_alive():
            self.__logger.info(f"sending signal '{number.name}' to process[{self.name}]")
            self.__signals_sent.add(number)
            self.__child.send_signal(number)

    def __timeout_s(self, context: LaunchContext, given: list[Substitution]) -> float:
        text = perform_substitutions(context, given)
        try:
            return max(float(text), 0.0)
        except ValueError:
            # Too late to refuse: the process has to be stopped.
            self.__logger.error(f"'{text}' is not a timeout in seconds, using {DEFAULT_STEP_S:g}")
            return DEFAULT_STEP_S

    def __wants_terminal(self, context: LaunchContext) -> bool:
        configured = context.launch_configurations.get("emulate_tty")
        if configured is None:
            return self.__emulate_tty
        return evaluate_condition_expression(
            context, normalize_to_list_of_substitutions(configured)
        )

    def __on_line(self, stream: str, line: str) -> None:
        if self.__cached is not None:
            self.__cached[stream].append(line)
        logger = self.__loggers[0 if stream == "stdout" else 1]
        logger.info("%s", self.__output_format.format(line=line, this=self))

    def __cached_text(self, stream: str) -> str:
        if self.__cached is None:
            raise RuntimeError(
                f"process '{self.name}': give ExecuteProcess(..., cached_output=True) "
                f"to be able to read its {stream}"
            )
        return "".join(f"{line}\n" for line in self.__cached[stream])

    def __complete(self, task: asyncio.Task[None]) -> None:
        if self.__completed is not None and not self.__completed.done():
            if not task.cancelled() and task.exception() is not None:
                self.__completed.set_exception(task.exception() or RuntimeError("unknown"))
            else:
                self.__completed.set_result(None)


class _StopAndSignalHandler(BaseEventHandler):
    """Obeys the events that are addressed to one process."""

    def __init__(self, action: ExecuteProcess) -> None:
        self.__action = action
        super().__init__(matcher=self.__is_meant)

    def __is_meant(self, event: Event) -> bool:
        if isinstance(event, (ShutdownProcess, SignalProcess)):
            return bool(event.process_matcher(self.__action))
        return isinstance(event, Shutdown)

    def handle(self, event: Event, context: LaunchContext) -> SomeEntitiesType | None:
        """Stop or signal the process."""
        super().handle(event, context)
        if isinstance(event, SignalProcess):
            self.__action._send_signal(event.signal)
        else:
            self.__action._stop(context)
        return None
