# SPDX-License-Identifier: MIT
"""What a launch does when: functions, timers, starts and exits of processes, its own end."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from launch.actions import (
    EmitEvent,
    ExecuteProcess,
    GroupAction,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
    TimerAction,
)
from launch.event_handlers import OnProcessExit, OnProcessStart, OnShutdown
from launch.events import Shutdown as ShutdownEvent
from launch.events import matches_action
from launch.events.process import ShutdownProcess
from launch.substitutions import LaunchConfiguration
from launch_probe import Probe, run

pytestmark = pytest.mark.usefixtures("quiet_and_contained")


def python(code: str, **keywords: object) -> ExecuteProcess:
    return ExecuteProcess(cmd=[sys.executable, "-c", code], **keywords)


def test_entities_are_visited_in_order_and_depth_first() -> None:
    probe = Probe()
    nested = OpaqueFunction(
        function=lambda context, label: [probe(label), GroupAction([probe("deep")])],
        args=["nested"],
    )
    run(probe("first"), nested, probe("last"))
    assert probe.seen == ["first", "nested", "deep", "last"]


def test_a_timer_fires_after_its_period_and_later_timers_later() -> None:
    probe = Probe()
    run(
        TimerAction(period=0.3, actions=[probe("late")]),
        TimerAction(period=LaunchConfiguration("p", default="0.1"), actions=[probe("early")]),
        probe("now"),
    )
    assert probe.seen == ["now", "early", "late"]


def test_the_end_of_the_launch_cancels_timers() -> None:
    probe = Probe()
    run(
        TimerAction(period=600.0, actions=[probe("never")]),
        TimerAction(period=0.1, actions=[Shutdown(reason="enough")]),
    )
    assert probe.seen == []


def test_on_shutdown_knows_the_reason() -> None:
    reasons: list[str] = []
    handler = OnShutdown(on_shutdown=lambda event, context: reasons.append(event.reason))
    run(RegisterEventHandler(handler), EmitEvent(event=ShutdownEvent(reason="by hand")))
    assert reasons == ["by hand"]


def test_start_and_exit_handlers_see_their_own_process_only() -> None:
    seen: list[tuple] = []
    first = python("raise SystemExit(4)", name="first")
    second = python("pass", name="second")
    run(
        RegisterEventHandler(
            OnProcessStart(
                target_action=first,
                on_start=lambda event, context: seen.append(("start", event.pid)),
            )
        ),
        RegisterEventHandler(
            OnProcessExit(
                target_action=first,
                on_exit=lambda event, context: seen.append(("exit", event.returncode)),
            )
        ),
        first,
        second,
    )
    assert [kind for kind, _ in seen] == ["start", "exit"]
    assert seen[0][1] == first.process_details["pid"]
    assert seen[1][1] == 4


def test_an_exit_handler_can_start_the_next_process() -> None:
    order: list[str] = []
    first = python("pass")
    second = python("pass", on_exit=lambda event, context: order.append("second ended"))
    run(
        RegisterEventHandler(
            OnProcessExit(target_action=first, on_exit=[LogInfo(msg="next"), second])
        ),
        first,
    )
    assert order == ["second ended"]


def test_on_exit_actions_run_when_the_process_ends_and_may_end_the_launch() -> None:
    other = ExecuteProcess(cmd=["sleep", "600"])
    code, service = run(other, python("pass", on_exit=Shutdown(reason="done")))
    assert (code, service.failures) == (0, [])
    assert other.return_code == -2, "stopped by SIGINT"


def test_one_process_can_be_stopped_without_ending_the_launch(tmp_path: Path) -> None:
    probe = Probe()
    gone = tmp_path / "the victim is gone"
    note = OpaqueFunction(function=lambda context: gone.touch())
    victim = python("import time; time.sleep(600)", on_exit=[probe("victim ended"), note])
    outlive = (
        "import os, time\n"
        "until = time.monotonic() + 60\n"
        f"while not os.path.exists({str(gone)!r}) and time.monotonic() < until: time.sleep(0.01)"
    )
    stop = EmitEvent(event=ShutdownProcess(process_matcher=matches_action(victim)))
    code, service = run(
        victim,
        RegisterEventHandler(OnProcessStart(target_action=victim, on_start=[stop])),
        python(outlive, on_exit=[probe("other ended")]),
    )
    assert probe.seen == ["victim ended", "other ended"]
    assert (code, service.failures) == (0, [])


def test_an_action_cannot_be_executed_twice(capsys) -> None:
    process = python("pass")
    code, _ = run(process, process)
    assert code == 1
    assert "executed more than once" in capsys.readouterr().out


def test_an_error_in_one_place_stops_every_process() -> None:
    sleeper = python("import time; time.sleep(600)")
    bad = OpaqueFunction(function=lambda context: 1 / 0)
    start = RegisterEventHandler(OnProcessStart(target_action=sleeper, on_start=[bad]))
    code, _ = run(start, sleeper)
    assert code == 1
    # Ended by SIGINT; an interpreter that is still starting up turns that into 1.
    assert sleeper.return_code in (-2, 1)
