"""Events that tell what a process did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...event import Event

if TYPE_CHECKING:
    from ...actions.execute_process import ExecuteProcess


class RunningProcessEvent(Event):
    """Something happened to one process."""

    name = "launch.events.process.RunningProcessEvent"

    def __init__(
        self,
        *,
        action: ExecuteProcess,
        name: str,
        cmd: list[str],
        cwd: str | None,
        env: dict[str, str] | None,
        pid: int,
    ) -> None:
        self.__action = action
        self.__process_name = name
        self.__cmd = cmd
        self.__cwd = cwd
        self.__env = env
        self.__pid = pid

    @property
    def action(self) -> ExecuteProcess:
        """The action that started the process."""
        return self.__action

    @property
    def execute_process_action(self) -> ExecuteProcess:
        """The action that started the process (ROS's older name)."""
        return self.__action

    @property
    def process_name(self) -> str:
        """Label of the process, such as `talker-1`."""
        return self.__process_name

    @property
    def cmd(self) -> list[str]:
        """The command line."""
        return self.__cmd

    @property
    def cwd(self) -> str | None:
        """The working folder, None for the launch's own."""
        return self.__cwd

    @property
    def env(self) -> dict[str, str] | None:
        """The environment of the process."""
        return self.__env

    @property
    def pid(self) -> int:
        """The process id."""
        return self.__pid


class ProcessStarted(RunningProcessEvent):
    """A process was started."""

    name = "launch.events.process.ProcessStarted"


class ProcessExited(RunningProcessEvent):
    """A process ended; a negative return code is minus the signal that ended it."""

    name = "launch.events.process.ProcessExited"

    def __init__(
        self,
        *,
        returncode: int,
        action: ExecuteProcess,
        name: str,
        cmd: list[str],
        cwd: str | None,
        env: dict[str, str] | None,
        pid: int,
    ) -> None:
        super().__init__(action=action, name=name, cmd=cmd, cwd=cwd, env=env, pid=pid)
        self.__returncode = returncode

    @property
    def returncode(self) -> int:
        """The exit code."""
        return self.__returncode
