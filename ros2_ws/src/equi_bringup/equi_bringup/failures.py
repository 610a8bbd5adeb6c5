# SPDX-License-Identifier: MIT
"""What the end of a process means for the launch: a failure of one is a failure of the launch.

ROS's own launch ends with code 0 whatever its processes do, unless a launch file raises. So the
reactions here raise: the launch reports the error, ends every process, and its code is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from launch.actions import EmitEvent
from launch.events import Shutdown

Reaction = Callable[[Any, Any], "list[Any] | None"]
"""Takes the event of a process that ended and the launch context; returns what happens next."""


class ProcessFailedError(RuntimeError):
    """A process that the system needs has failed; names it and its exit code."""


def end_of_launch(name: str, *, may_end: bool = False) -> Reaction:
    """The launch ends with the process, and fails if that failed, or was not to end at all.

    Args:
        name: the process.
        may_end: ending with code 0 is what it is for.
    """

    def react(event: Any, context: Any) -> list[Any] | None:
        _require_success(name, event, context)
        if context.is_shutdown:
            return None
        if not may_end:
            raise ProcessFailedError(f"{name} has ended by itself; its last lines say why")
        return [EmitEvent(event=Shutdown(reason=f"{name} has ended"))]

    return react


def after(name: str, entities: list[Any]) -> Reaction:
    """These entities start when the process has ended well; otherwise the launch fails."""

    def react(event: Any, context: Any) -> list[Any] | None:
        _require_success(name, event, context)
        return None if context.is_shutdown else entities

    return react


def _require_success(name: str, event: Any, context: Any) -> None:
    # What ends during a shutdown was asked to.
    if event.returncode != 0 and not context.is_shutdown:
        raise ProcessFailedError(
            f"{name} has failed with exit code {event.returncode}; its last lines say why"
        )
