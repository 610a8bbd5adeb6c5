# SPDX-License-Identifier: MIT
"""However `ros2 launch` ends, by signal, error or death, no process of it stays behind."""

from __future__ import annotations

import os
import re
import signal

import pytest
from launched_programs import (
    IGNORES_BOTH,
    IGNORES_SIGINT,
    LEAVES_WHEN_TOLD,
    PARENT,
    SLEEPER,
)


def pid_in(line: str) -> int:
    return int(re.findall(r"\d+", line)[-1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_launch_stops_every_child_and_is_no_failure(
    start, launch_file, until_dead, number
) -> None:
    launch = start("launch", launch_file(f"{SLEEPER}, {SLEEPER}, {SLEEPER},"))
    pids = [pid_in(launch.wait_for("process started", count)) for count in (1, 2, 3)]
    launch.signal(number)
    assert launch.finish() == 0
    until_dead(*pids, within_s=0.0)
    for name in ("sleep-1", "sleep-2", "sleep-3"):
        assert launch.output.count(f"sending signal 'SIGINT' to process[{name}]") == 1
    assert "escalating" not in launch.output


def test_stopping_escalates_from_sigint_over_sigterm_to_sigkill(start, launch_file) -> None:
    path = launch_file(
        f"""
        ExecuteProcess(cmd=[sys.executable, '-c', {IGNORES_SIGINT!r}], name='one', output='screen',
                       sigterm_timeout='0.3', sigkill_timeout='60'),
        ExecuteProcess(cmd=[sys.executable, '-c', {IGNORES_BOTH!r}], name='two', output='screen',
                       sigterm_timeout='0.3', sigkill_timeout=['0.', '3']),
        """
    )
    launch = start("launch", path)
    launch.wait_for("ready", 2)
    launch.signal(signal.SIGINT)
    assert launch.finish() == 0
    one = [line for line in launch.lines if "one-1]" in line]
    two = [line for line in launch.lines if "two-2]" in line]
    base = "process[{}] failed to terminate '{}' seconds after receiving '{}', escalating to '{}'"
    assert f"[ERROR] [one-1]: {base.format('one-1', '0.3', 'SIGINT', 'SIGTERM')}" in one
    assert any("exit code -15" in line for line in one)
    assert f"[ERROR] [two-2]: {base.format('two-2', '0.6', 'SIGTERM', 'SIGKILL')}" in two
    assert any("exit code -9" in line for line in two)
    assert not any("SIGKILL" in line for line in one)


def test_the_escalation_times_can_be_given_on_the_command_line(start, launch_file) -> None:
    process = f"ExecuteProcess(cmd=[sys.executable, '-c', {IGNORES_BOTH!r}], output='screen'),"
    launch = start("launch", launch_file(process), "sigterm_timeout:=0.2", "sigkill_timeout:=0.1")
    launch.wait_for("ready")
    launch.signal(signal.SIGINT)
    assert launch.finish() == 0
    launch.wait_for("failed to terminate '0.2' seconds after receiving 'SIGINT'")
    launch.wait_for("escalating to 'SIGKILL'")


def test_a_second_ctrl_c_is_ignored_and_no_child_is_lost(start, launch_file, until_dead) -> None:
    path = launch_file(
        f"""
        ExecuteProcess(cmd=[sys.executable, '-c', {LEAVES_WHEN_TOLD!r}], output='screen',
                       sigterm_timeout='600'),
        """
    )
    launch = start("launch", path)
    pid = pid_in(launch.wait_for("process started"))
    launch.wait_for("ready")
    launch.signal(signal.SIGINT)
    launch.wait_for("sending signal 'SIGINT'")
    launch.signal(signal.SIGINT)
    launch.wait_for("again, ignoring")
    os.kill(pid, signal.SIGUSR1)
    assert launch.finish() == 0
    until_dead(pid, within_s=0.0)


def test_grandchildren_are_stopped_with_their_parent(start, launch_file, until_dead) -> None:
    parent = PARENT.format(more="", then="time.sleep(600)")
    path = launch_file(
        f"""
        ExecuteProcess(cmd=[sys.executable, '-c', {parent!r}], output='screen',
                       sigterm_timeout='0.3'),
        """
    )
    launch = start("launch", path)
    grandchild = pid_in(launch.wait_for("grandchild"))
    launch.signal(signal.SIGINT)
    assert launch.finish() == 0
    until_dead(grandchild, within_s=0.0)
    assert "had left its process group" not in launch.output, "stopped with its group"


@pytest.mark.parametrize("more", ["", ", start_new_session=True"])
def test_a_grandchild_that_outlives_its_parent_is_stopped_at_the_end(
    start, launch_file, until_dead, more: str
) -> None:
    parent = PARENT.format(more=more, then="sys.exit(0)")
    path = launch_file(
        f"""
        ExecuteProcess(cmd=[sys.executable, '-c', {parent!r}], output='screen'),
        ExecuteProcess(cmd=['sleep', '600']),
        """
    )
    launch = start("launch", path)
    grandchild = pid_in(launch.wait_for("grandchild"))
    launch.wait_for("process has finished cleanly")
    launch.signal(signal.SIGINT)
    assert launch.finish() == 0
    until_dead(grandchild, within_s=0.0)


def test_children_do_not_survive_a_launch_that_is_killed(start, launch_file, until_dead) -> None:
    parent = PARENT.format(more="", then="time.sleep(600)")
    path = launch_file(
        f"ExecuteProcess(cmd=[sys.executable, '-c', {parent!r}], output='screen'), {SLEEPER},"
    )
    launch = start("launch", path)
    child = pid_in(launch.wait_for("process started", 1))
    sleeper = pid_in(launch.wait_for("process started", 2))
    grandchild = pid_in(launch.wait_for("grandchild"))
    launch.signal(signal.SIGKILL)
    launch.process.wait(timeout=60)
    until_dead(child, sleeper, grandchild)


def test_a_missing_executable_stops_what_runs_and_lists_what_there_is(
    start, launch_file, until_dead
) -> None:
    later = "TimerAction(period=0.5, actions=[Node(package='pip_ros2_demo', executable='walker')])"
    launch = start("launch", launch_file(f"{SLEEPER}, {later},"))
    pid = pid_in(launch.wait_for("process started"))
    assert launch.finish() == 1
    until_dead(pid, within_s=0.0)
    launch.wait_for("executable 'walker' not found in the libexec directory")
    launch.wait_for("Executables of package 'pip_ros2_demo': exit_with, listener, machine, talker")
