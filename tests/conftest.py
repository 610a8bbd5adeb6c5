# SPDX-License-Identifier: MIT
"""Fixtures that every test may use; what they are made of lies in tests/fixtures.

def test_the_pair_talks(ros_launch, ros_probe):
    launched = ros_launch("equi_demo_nodes", "pair.launch.py", mode="fast")
    launched.wait_for_text("heard command")
    ros_probe.wait_for_topic("/demo/command")
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from families import ManagedProcess, ProcessFamily
from ros_domains import reserved_domain
from ros_origin import LAUNCH_IS_ROSS_OWN, PIP_ROS2_IS_INSTALLED
from ros_probe import RosProbe
from run_guard import RunGuard

# Where a real ROS 2 is used, pip_ros2 is not installed, or hidden, and has nothing to be tested.
collect_ignore = ["pip_ros2"] if LAUNCH_IS_ROSS_OWN or not PIP_ROS2_IS_INSTALLED else []


_GUARD = pytest.StashKey[RunGuard]()


def pytest_configure(config: pytest.Config) -> None:
    """Make Ctrl-C work for the processes that tests start, and let none outlive a killed run.

    A shell starts its background jobs with SIGINT ignored, and every child would inherit that: a
    test run as `make test &` or by a CI server could then never end a node as a user does.
    """
    os.environ["EQUI_CACHE"] = ""  # no test depends on what was played before
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # `nohup make test`
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    config.stash[_GUARD] = RunGuard()


def pytest_unconfigure(config: pytest.Config) -> None:
    """The run has ended by itself."""
    if _GUARD in config.stash:
        config.stash[_GUARD].dismiss()


@pytest.fixture(scope="session")
def repository_root() -> Path:
    """The root of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def envs() -> Iterator[dict[str, Any]]:
    """An environment of every robot task, by name."""
    from equi_rl.envs import TASKS, make_env  # the robot profile has no training package

    made = {task: make_env(task) for task in TASKS}
    yield made
    for env in made.values():
        env.close()


@pytest.fixture
def processes() -> Iterator[ProcessFamily]:
    """Starts processes; when the test is over they are stopped, and an orphan fails the test."""
    family = ProcessFamily()
    yield family
    family.close()


@pytest.fixture
def ros_domain_id(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A ROS domain that no other running test uses, already in this test's environment."""
    if importlib.util.find_spec("rclpy") is None or "AMENT_PREFIX_PATH" not in os.environ:
        pytest.fail("ROS is not in this shell: run `make test`, or `source env.sh` before pytest")
    with reserved_domain() as domain_id:
        monkeypatch.setenv("ROS_DOMAIN_ID", str(domain_id))
        monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        yield domain_id


@pytest.fixture
def loopback_address() -> str:
    """A loopback address on which no robot is emulated, for a test that starts one there."""
    from ur_emulator.launching import free_address

    return free_address()


@pytest.fixture
def ros_probe(ros_domain_id: int) -> Iterator[RosProbe]:
    """A node of the test's own that waits for topics, messages and services."""
    probe = RosProbe(ros_domain_id)
    yield probe
    probe.close()


@pytest.fixture
def ros2(ros_domain_id: int, processes: ProcessFamily) -> Callable[..., ManagedProcess]:
    """Starts the real `ros2` command: `ros2("topic", "list")`."""
    command = shutil.which("ros2")
    if command is None:
        pytest.fail("there is no `ros2` command: run `make setup`, then `source env.sh`")

    def start(*words: str | Path) -> ManagedProcess:
        return processes.start([command, *words], {"ROS_DOMAIN_ID": str(ros_domain_id)})

    return start


@pytest.fixture
def ros_launch(ros2: Callable[..., ManagedProcess]) -> Callable[..., ManagedProcess]:
    """Launches with the real `ros2 launch`: `ros_launch("package", "a.launch.py", argument=1)`.

    A path alone works too. What comes back can be waited for; it is ended after the test.
    """

    def launch(*target: str | Path, **arguments: object) -> ManagedProcess:
        words = [f"{name}:={value}" for name, value in arguments.items()]
        return ros2("launch", *target, *words)

    return launch
