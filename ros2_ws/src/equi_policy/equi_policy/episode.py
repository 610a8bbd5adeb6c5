# SPDX-License-Identifier: MIT
"""How an episode ends: the rules, without ROS."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from equi_core.setting_fields import setting


class EpisodeOutcome(IntEnum):
    """The numbers are those of the RunEpisode action."""

    SUCCEEDED = 0
    STEP_LIMIT = 1
    FAULTED = 2
    OBJECT_LOST = 3
    OBSERVATION_LOST = 4
    STOPPED = 5
    REFUSED = 6


@dataclass(frozen=True)
class EpisodeEnd:
    """Why an episode ended: a code and a sentence."""

    outcome: EpisodeOutcome
    reason: str


@dataclass(frozen=True)
class EpisodeLimits:
    """When to give up."""

    max_steps: int
    observation_timeout_s: float = setting(10.0, low=0.1, high=3600.0)
    """Longest wait for an observation that can be acted on."""
    execution_timeout_s: float = setting(20.0, low=0.1, high=3600.0)
    """Longest wait for the driver's report on a command."""

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise ValueError(f"max_steps is {self.max_steps}; it must be at least 1")


@dataclass(frozen=True)
class EpisodeStatus:
    """What is known of the running episode."""

    steps: int
    """Commands executed."""
    awaiting_execution: bool
    quiet_s: float
    """Time since the last command was sent or reported."""
    fault: str = ""
    """The driver's latched fault in words; empty if none."""
    cancel_requested: bool = False
    awaiting_referee: bool = False
    """The referee was asked and has not answered: only a fault or a request ends the episode."""
    task_done: bool = False
    task_failed: str = ""
    """Why the task cannot be done any more; empty if it can."""
    perception: str = ""
    """Why perception gives nothing; empty if it does."""
    broken: str = ""
    """Why the policy cannot continue; empty if it can."""


def evaluate_end(status: EpisodeStatus, limits: EpisodeLimits) -> EpisodeEnd | None:
    """The end of the episode, or None while it continues. A fault outranks everything."""
    if status.fault:
        return EpisodeEnd(EpisodeOutcome.FAULTED, status.fault)
    if status.cancel_requested:
        return EpisodeEnd(EpisodeOutcome.STOPPED, "stopped by request")
    if status.awaiting_referee:
        return None
    if status.task_done:
        return EpisodeEnd(EpisodeOutcome.SUCCEEDED, "the task is done")
    if status.task_failed:
        return EpisodeEnd(EpisodeOutcome.OBJECT_LOST, status.task_failed)
    if status.broken:
        return EpisodeEnd(EpisodeOutcome.STOPPED, status.broken)
    if status.steps >= limits.max_steps and not status.awaiting_execution:
        return EpisodeEnd(EpisodeOutcome.STEP_LIMIT, f"{limits.max_steps} steps without success")
    if status.awaiting_execution and status.quiet_s > limits.execution_timeout_s:
        return EpisodeEnd(
            EpisodeOutcome.FAULTED,
            f"the driver did not report on a command within {limits.execution_timeout_s:g} s",
        )
    if not status.awaiting_execution and status.quiet_s > limits.observation_timeout_s:
        why = status.perception or "perception publishes nothing"
        return EpisodeEnd(
            EpisodeOutcome.OBSERVATION_LOST,
            f"no usable observation for {limits.observation_timeout_s:g} s: {why}",
        )
    return None
