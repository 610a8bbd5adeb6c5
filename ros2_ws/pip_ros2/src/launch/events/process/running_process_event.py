# SPDX-License-Identifier: MIT
"""Events that tell what a process did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
        self.action = action
        self.process_name = name  # label of the process, such as `talker-1`
        self.cmd = cmd
        self.cwd = cwd  # None for the launch's own
        self.env = env
        self.pid = pid

    @property
    def execute_process_action(self) -> ExecuteProcess:
        """The action that started the process (ROS's older name)."""
        return self.action


class ProcessStarted(RunningProcessEvent):
    """A process was started."""

    name = "launch.events.process.ProcessStarted"


class ProcessExited(RunningProcessEvent):
    """A process ended; a negative return code is minus the signal that ended it."""

    name = "launch.events.process.ProcessExited"

    def __init__(self, *, returncode: int, **process: Any) -> None:
        super().__init__(**process)
        self.returncode = returncode
