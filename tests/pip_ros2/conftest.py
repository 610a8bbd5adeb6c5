# SPDX-License-Identifier: MIT
"""Fixtures of the pip_ros2 tests: a small installed package, and the ros2 command as a process."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
from pip_ros2_cli.main import main
from ros_domains import reserved_domain

# Beside a ROS 2 installation its own tools come first: those of this package are not in use then.
if importlib.util.find_spec("launch._outside_subset") is None:
    collect_ignore_glob = ["test_*.py"]

HERE = Path(__file__).parent
DEMO = "pip_ros2_demo"
DEADLINE_S = 90.0  # only a hang takes this long
PATIENTLY = ("--spin-time", str(DEADLINE_S))
"""For commands that go on as soon as what they look for is discovered."""


class RunningCommand:
    """A started process whose output is collected, to wait for conditions on."""

    def __init__(self, words: list[str], env: dict[str, str], cwd: Path) -> None:
        self.process = subprocess.Popen(
            words,
            env=env,
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, text: str, count: int = 1) -> str:
        """Return the last line of `count` that contain the text."""
        deadline = time.monotonic() + DEADLINE_S
        with self._news:
            while True:
                found = [line for line in self.lines if text in line]
                if len(found) >= count:
                    return found[count - 1]
                if not self._reader.is_alive() or time.monotonic() > deadline:
                    raise AssertionError(f"{text!r} x{count} never came; output:\n{self.output}")
                self._news.wait(timeout=0.2)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def finish(self) -> int:
        """Return the exit code once the process has ended and all its output is read."""
        code = self.process.wait(timeout=DEADLINE_S)
        self._reader.join(timeout=DEADLINE_S)
        return code

    def end(self) -> None:
        for number in (signal.SIGINT, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(timeout=60)

    def _read(self) -> None:
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()


@pytest.fixture(scope="session")
def running_command() -> type[RunningCommand]:
    """The class above, for tests that start commands in an environment of their own."""
    return RunningCommand


@pytest.fixture(scope="session")
def demo_prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed package with nodes, launch files and a parameter file."""
    prefix = tmp_path_factory.mktemp("prefix")
    index = prefix / "share" / "ament_index" / "resource_index" / "packages"
    index.mkdir(parents=True)
    (index / DEMO).touch()
    share = prefix / "share" / DEMO
    shutil.copytree(HERE / "demo_package" / "launch", share / "launch")
    shutil.copytree(HERE / "demo_package" / "config", share / "config")
    nodes = prefix / "lib" / DEMO
    nodes.mkdir(parents=True)
    for source in (HERE / "demo_package" / "nodes").iterdir():
        text = source.read_text().replace("/usr/bin/env python3", sys.executable, 1)
        (nodes / source.name).write_text(text)
        (nodes / source.name).chmod(0o755)
    return prefix


@pytest.fixture(scope="session")
def ros_environment(
    demo_prefix: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """Environment of commands: the demo package, a domain of its own, loopback only."""
    env = dict(os.environ)
    underlay = env.get("AMENT_PREFIX_PATH") or sys.prefix
    env["AMENT_PREFIX_PATH"] = f"{demo_prefix}{os.pathsep}{underlay}"
    env["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    env["ROS_LOG_DIR"] = str(tmp_path_factory.mktemp("log"))
    env["PYTHONUNBUFFERED"] = "1"
    env.pop("OVERRIDE_LAUNCH_PROCESS_OUTPUT", None)
    with reserved_domain() as domain_id:
        env["ROS_DOMAIN_ID"] = str(domain_id)
        yield env


@pytest.fixture
def start(
    ros_environment: dict[str, str], tmp_path: Path
) -> Iterator[Callable[..., RunningCommand]]:
    """Start `ros2 ...` in the background; it is ended with the test."""
    started: list[RunningCommand] = []

    def start_ros2(*words: str, **extra_env: str) -> RunningCommand:
        command = RunningCommand(
            [sys.executable, "-m", "pip_ros2_cli.main", *words],
            {**ros_environment, **extra_env},
            tmp_path,
        )
        started.append(command)
        return command

    yield start_ros2
    for command in started:
        command.end()


Answer = subprocess.CompletedProcess[str]


def run_in_process(words: tuple[str, ...], environment: dict[str, str]) -> Answer:
    """Call the command's entry point here, in another environment; it may use a node of its own.

    Over DDS as in a process of its own, but without a second of starting Python for each.
    """
    printed, complaints = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, environment),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(complaints),
    ):
        try:
            code: int | str | None = main(words)
        except SystemExit as exit_request:
            code = exit_request.code
    return Answer(words, int(code or 0), printed.getvalue(), complaints.getvalue())


@pytest.fixture(scope="session")
def run_ros2(ros_environment: dict[str, str]) -> Callable[..., Answer]:
    """Run `ros2 ...` to its end.

    Discovery takes as long as it takes, so what looks for a node, a topic or a service is given
    all the time there is, unless the test says otherwise.
    """

    def run(*words: str) -> Answer:
        if words[0] != "run":  # that one becomes the executable
            return run_in_process(_patiently(words), ros_environment)
        return subprocess.run(
            [sys.executable, "-m", "pip_ros2_cli.main", *words],
            env=ros_environment,
            capture_output=True,
            text=True,
            timeout=2 * DEADLINE_S,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def ros2_in() -> Callable[..., Answer]:
    """Run `ros2 ...` in an environment: `ros2_in(("node", "list"), environment)`."""
    return run_in_process


def _patiently(words: tuple[str, ...]) -> tuple[str, ...]:
    looks = {("param", "get"), ("param", "set"), ("topic", "echo"), ("service", "call")}
    looks |= {("action", "send_goal"), ("param", "list")}
    return (*words, *PATIENTLY) if words[:2] in looks and "--spin-time" not in words else words


@pytest.fixture(scope="session")
def call_ros2(ros_environment: dict[str, str]) -> Callable[..., Answer]:
    """Run what looks at no node: without patience."""
    return lambda *words: run_in_process(words, ros_environment)


@pytest.fixture(scope="session")
def eventually(
    run_ros2: Callable[..., Answer],
) -> Callable[..., str]:
    """Repeat a listing command until its output satisfies a condition: discovery takes its time."""

    def repeat(*words: str, until: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = run_ros2(*words)
            if answer.returncode == 0 and until(answer.stdout):
                return answer.stdout
            assert time.monotonic() < deadline, f"ros2 {' '.join(words)} says {answer}"

    return repeat


@pytest.fixture(scope="session")
def demo_launch(
    ros_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningCommand]:
    """The demo's two nodes, launched once for all tests that look at them; stopped at the end."""
    command = RunningCommand(
        [sys.executable, "-m", "pip_ros2_cli.main", "launch", DEMO, "pair.launch.py", "text:=yo"],
        ros_environment,
        tmp_path_factory.mktemp("demo"),
    )
    try:
        command.wait_for("got yo: yo")
        yield command
    finally:
        command.end()


@pytest.fixture
def quiet_and_contained(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Keep log files out of the home folder, and the environment as it was."""
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path_factory.mktemp("log")))
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def launch_file(tmp_path: Path) -> Callable[[str], str]:
    """Write a launch file with the given entities; return its path."""

    def write(entities: str, preamble: str = "") -> str:
        header = """
            import os, sys
            from launch import LaunchDescription
            from launch.actions import *
            from launch.actions import (
                DeclareLaunchArgument, EmitEvent, ExecuteProcess, GroupAction, LogInfo,
                OpaqueFunction, RegisterEventHandler, SetEnvironmentVariable, Shutdown, TimerAction)
            from launch.conditions import IfCondition
            from launch.event_handlers import OnProcessExit, OnProcessStart, OnShutdown
            from launch.substitutions import LaunchConfiguration
            from launch_ros.actions import Node
        """
        body = textwrap.dedent(header) + textwrap.dedent(preamble)
        body += "\ndef generate_launch_description():\n    return LaunchDescription([\n"
        body += textwrap.indent(textwrap.dedent(entities).strip("\n"), " " * 8)
        body += "\n    ])\n"
        path = tmp_path / "test.launch.py"
        path.write_text(body)
        return str(path)

    return write


def is_alive(pid: int) -> bool:
    """Return whether the process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


@pytest.fixture
def until_dead() -> Callable[..., None]:
    """Wait until processes are gone; fail if they stay."""

    def wait(*pids: int, within_s: float = DEADLINE_S) -> None:
        deadline = time.monotonic() + within_s
        while alive := [pid for pid in pids if is_alive(pid)]:
            assert time.monotonic() < deadline, f"processes {alive} are still alive"
            time.sleep(0.02)

    return wait
