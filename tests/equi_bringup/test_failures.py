# SPDX-License-Identifier: MIT
"""What the end of a process means for the launch: see also the launches that really fail."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from launch.actions import EmitEvent, LogInfo, OpaqueFunction, TimerAction
from launch.events import Shutdown

from equi_bringup.failures import ProcessFailedError, Reaction, after, end_of_launch


def ended(reaction: Reaction, code: int, *, in_shutdown: bool = False) -> list[Any] | None:
    """What follows when a process ends with this code."""
    return reaction(SimpleNamespace(returncode=code), SimpleNamespace(is_shutdown=in_shutdown))


def a_moment_later(actions: list[Any] | None, *, in_shutdown: bool = False) -> None:
    """The time of grace is over."""
    (timer,) = actions or []
    assert isinstance(timer, TimerAction)
    (action,) = timer.actions
    assert isinstance(action, OpaqueFunction)
    action.execute(SimpleNamespace(is_shutdown=in_shutdown))


@pytest.mark.parametrize("code", [1, 3, -11])
@pytest.mark.parametrize("may_end", [True, False])
def test_a_process_that_failed_fails_the_launch_by_name(code: int, may_end: bool) -> None:
    with pytest.raises(ProcessFailedError, match=f"driver has failed with exit code {code}"):
        a_moment_later(ended(end_of_launch("driver", may_end=may_end), code))


def test_a_node_that_ends_by_itself_fails_the_launch_also_with_code_0() -> None:
    with pytest.raises(ProcessFailedError, match="driver has ended by itself"):
        a_moment_later(ended(end_of_launch("driver"), 0))


@pytest.mark.parametrize("code", [0, 1, -2])
def test_a_process_that_took_notice_of_ctrl_c_before_the_launch_did_is_no_failure(
    code: int,
) -> None:
    a_moment_later(ended(end_of_launch("emulator"), code), in_shutdown=True)


def test_the_launch_ends_well_when_the_evaluation_does() -> None:
    (action,) = ended(end_of_launch("evaluator", may_end=True), 0) or []
    assert isinstance(action, EmitEvent)
    assert isinstance(action.event, Shutdown)
    assert action.event.reason == "evaluator has ended"


@pytest.mark.parametrize("code", [0, 130, -9])
def test_what_ends_in_a_shutdown_was_asked_to(code: int) -> None:
    entities = [LogInfo(msg="more")]
    for reaction in (end_of_launch("a"), end_of_launch("b", may_end=True), after("c", entities)):
        assert ended(reaction, code, in_shutdown=True) is None


def test_what_waits_for_a_process_starts_only_if_that_ended_well() -> None:
    entities = [LogInfo(msg="more")]
    assert ended(after("wait_for_the_cell", entities), 0) == entities
    with pytest.raises(ProcessFailedError, match="wait_for_the_cell has failed"):
        a_moment_later(ended(after("wait_for_the_cell", entities), 1))
