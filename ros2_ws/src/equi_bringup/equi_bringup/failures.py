# SPDX-License-Identifier: MIT
"""What the end of a process means for the launch: a failure of one is a failure of the launch.

ROS's own launch ends with code 0 whatever its processes do, unless a launch file raises. So the
reactions here raise: the launch reports the error, ends every process, and its code is 1.

Ctrl-C reaches every process of the terminal, and on a busy machine one of them may have ended
before the launch has even noticed. So a failure is declared a moment later, unless the launch is
being ended by then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from launch.actions import EmitEvent, OpaqueFunction, TimerAction
from launch.events import Shutdown

Reaction = Callable[[Any, Any], "list[Any] | None"]
"""Takes the event of a process that ended and the launch context; returns what happens next."""

GRACE_S = 0.5
"""So long after the end of a process the launch fails, if it is not being ended."""


class ProcessFailedError(RuntimeError):
    """A process that the system needs has failed; names it and its exit code."""


def end_of_launch(name: str, *, may_end: bool = False) -> Reaction:
    """The launch ends with the process, and fails if that failed, or was not to end at all.

    Args:
        name: the process.
        may_end: ending with code 0 is what it is for.
    """

    def react(event: Any, context: Any) -> list[Any] | None:
        if context.is_shutdown:  # what ends now was asked to
            return None
        if event.returncode != 0:
            return _failed(name, event)
        if not may_end:
            return _fail(f"{name} has ended by itself; its last lines say why")
        return [EmitEvent(event=Shutdown(reason=f"{name} has ended"))]

    return react


def after(name: str, entities: list[Any]) -> Reaction:
    """These entities start when the process has ended well; otherwise the launch fails."""

    def react(event: Any, context: Any) -> list[Any] | None:
        if context.is_shutdown:
            return None
        return _failed(name, event) if event.returncode != 0 else entities

    return react


def _failed(name: str, event: Any) -> list[Any]:
    return _fail(f"{name} has failed with exit code {event.returncode}; its last lines say why")


def _fail(why: str) -> list[Any]:
    """Let the launch fail after the time of grace; its end cancels the timer."""

    def fail(context: Any) -> None:
        if not context.is_shutdown:
            raise ProcessFailedError(why)

    return [TimerAction(period=GRACE_S, actions=[OpaqueFunction(function=fail)])]
