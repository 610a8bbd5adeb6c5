# SPDX-License-Identifier: MIT
"""lifecycle, node info, topic pub and parameter files against a real lifecycle node over DDS."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from ros_domains import reserved_domain

pytestmark = pytest.mark.ros

NAME = "/cell/machine"
DEADLINE_S = 90.0  # only a hang takes this long
PATIENTLY = ("--spin-time", str(DEADLINE_S))
Ros2 = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def domain_environment(ros_environment) -> Iterator[dict[str, str]]:
    """A domain of its own: lists show this node and no other."""
    with reserved_domain() as domain_id:
        yield {**ros_environment, "ROS_DOMAIN_ID": str(domain_id)}


@pytest.fixture(scope="module")
def background(domain_environment, running_command, tmp_path_factory) -> Iterator[Any]:
    """Start `ros2 ...` in the background; all are ended with the last test."""
    started = []

    def start(*words: str) -> Any:
        command = running_command(
            [sys.executable, "-m", "pip_ros2_cli.main", *words],
            domain_environment,
            tmp_path_factory.mktemp("command"),
        )
        started.append(command)
        return command

    yield start
    for command in started:
        command.end()


@pytest.fixture(scope="module")
def machine(background) -> Any:
    command = background("run", "pip_ros2_demo", "machine")
    command.wait_for("machine is ready")
    return command


@pytest.fixture(scope="module")
def ros2(machine, domain_environment, ros2_in) -> Ros2:
    """Run `ros2 ...` beside the node until it ends."""
    return lambda *words: ros2_in(words, domain_environment)


def test_a_lifecycle_node_is_seen_and_led_through_its_states(ros2) -> None:
    assert ros2("lifecycle", "nodes", *PATIENTLY).stdout == f"{NAME}\n"
    assert ros2("lifecycle", "get", *PATIENTLY).stdout == f"{NAME}: unconfigured [1]\n"
    assert ros2("lifecycle", "list", NAME, *PATIENTLY).stdout == (
        "- configure [1]\n\tStart: unconfigured\n\tGoal: configuring\n"
        "- shutdown [5]\n\tStart: unconfigured\n\tGoal: shuttingdown\n"
    )
    early = ros2("lifecycle", "set", NAME, "activate", *PATIENTLY)
    assert early.returncode == 1
    assert "available ones are:\n- configure [1]\n- shutdown [5]" in early.stderr
    for transition in ("configure", "3"):
        done = ros2("lifecycle", "set", NAME, transition, *PATIENTLY)
        assert (done.returncode, done.stdout) == (0, "Transitioning successful\n")
    assert ros2("lifecycle", "get", "cell/machine", *PATIENTLY).stdout == "active [3]\n"
    for transition in ("deactivate", "cleanup"):
        assert ros2("lifecycle", "set", NAME, transition, *PATIENTLY).returncode == 0


@pytest.mark.slow
def test_a_transition_that_the_node_refuses_is_a_failure(ros2) -> None:
    assert ros2("param", "set", NAME, "label", "broken", *PATIENTLY).returncode == 0
    refused = ros2("lifecycle", "set", NAME, "configure", *PATIENTLY)
    assert (refused.returncode, refused.stderr) == (1, "Transitioning failed\n")
    assert ros2("lifecycle", "get", NAME, *PATIENTLY).stdout == "unconfigured [1]\n"
    assert ros2("param", "set", NAME, "label", "old", *PATIENTLY).returncode == 0


def test_echo_shows_what_was_latched_before_it_came(ros2) -> None:
    answer = ros2("topic", "echo", "--once", "/cell/notice", *PATIENTLY)
    assert (answer.returncode, answer.stdout) == (0, "data: published once\n---\n")


def test_hz_hears_a_best_effort_topic(machine, background) -> None:
    meter = background("topic", "hz", "/cell/ticks")
    meter.wait_for("average rate")
    meter.signal(signal.SIGINT)
    assert meter.finish() == 130


def test_echo_follows_a_publisher_that_comes_later_with_a_weaker_qos(background) -> None:
    late = ("/late", "std_msgs/msg/String")
    echo = background("topic", "echo", "--once", *late, "--spin-time", "0.1")
    echo.wait_for("does not appear to be published yet")
    weak = ("--qos-reliability", "best_effort")
    publisher = background("topic", "pub", "-r", "20", *late, "{data: here}", *weak)
    echo.wait_for("data: here")
    assert echo.finish() == 0
    publisher.signal(signal.SIGINT)
    assert publisher.finish() == 130


def test_pub_once_waits_for_a_subscription_and_stamps_now(ros2, machine) -> None:
    before_s = int(time.time())
    values = "{stamp: now, frame_id: table}"
    answer = ros2("topic", "pub", "--once", "/cell/orders", "std_msgs/msg/Header", values)
    assert answer.returncode == 0
    assert "publisher: beginning loop\npublishing #1: std_msgs.msg.Header(" in answer.stdout
    stamp_s = int(machine.wait_for("order table at ").rpartition(" ")[2])
    assert before_s <= stamp_s <= time.time()


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("{frame: x}",), "has no field 'frame'"),
        (("{frame_id: x}", "-r", "0"), "--rate must be positive, got 0"),
        (("{}", "-1", "-w", "9", "--max-wait-time-secs", "0.2"), "Expected 9 subscribers"),
    ],
)
def test_a_bad_publication_is_explained(ros2, words, complaint) -> None:
    answer = ros2("topic", "pub", "/cell/orders", "std_msgs/msg/Header", *words)
    assert answer.returncode == 1
    assert complaint in answer.stderr


def test_node_info_lists_topics_services_and_actions(ros2) -> None:
    shown = ros2("node", "info", NAME, *PATIENTLY).stdout
    titles = re.findall(r"^  (\S.*):$", shown, re.M)
    assert shown.startswith(f"{NAME}\n  Subscribers:\n")
    assert titles == [
        "Subscribers",
        "Publishers",
        "Service Servers",
        "Service Clients",
        "Action Servers",
        "Action Clients",
    ]
    subscribers, _, rest = shown.partition("  Publishers:\n")
    publishers, _, services = rest.partition("  Service Servers:\n")
    assert "    /cell/orders: std_msgs/msg/Header\n" in subscribers
    assert "    /cell/notice: std_msgs/msg/String\n" in publishers
    assert f"    {NAME}/change_state: lifecycle_msgs/srv/ChangeState\n" in services


@pytest.mark.slow
def test_parameters_are_described_dumped_and_loaded_again(ros2, tmp_path) -> None:
    assert ros2("param", "describe", NAME, "belt.speed", *PATIENTLY).stdout == (
        "Parameter name: belt.speed\n"
        "  Type: double\n"
        "  Description: speed of the belt [m/s]\n"
        "  Constraints:\n"
        "    Min value: 0.0\n"
        "    Max value: 2.0\n"
    )
    unknown = ros2("param", "describe", NAME, "belt", *PATIENTLY)
    assert unknown.returncode == 1
    assert f"{NAME} has no parameter 'belt'" in unknown.stderr
    dumped = yaml.safe_load(ros2("param", "dump", NAME, *PATIENTLY).stdout)
    values = dumped[NAME]["ros__parameters"]
    assert (values["belt"], values["label"]) == ({"speed": 0.5}, "old")
    file = tmp_path / "new.yaml"
    wanted = {
        "/**": {"ros__parameters": {"label": "for all"}},
        NAME: {"ros__parameters": {"belt": {"speed": 1.5}}},
        "/other": {"ros__parameters": {"label": "not this"}},
    }
    file.write_text(yaml.dump(wanted))
    loaded = ros2("param", "load", NAME, str(file), *PATIENTLY)
    assert loaded.returncode == 0
    assert "Set parameter belt.speed successful\n" in loaded.stdout
    assert ros2("param", "get", NAME, "label", *PATIENTLY).stdout == "String value is: for all\n"
    file.write_text(yaml.dump({"cell/machine": {"ros__parameters": {"belt": {"speed": 9.0}}}}))
    refused = ros2("param", "load", NAME, str(file), *PATIENTLY)
    assert refused.returncode == 1
    assert "Set parameter belt.speed failed: " in refused.stderr


def test_a_parameter_file_for_other_nodes_is_refused(ros2, tmp_path) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(yaml.dump({"/other": {"ros__parameters": {"label": "x"}}}))
    answer = ros2("param", "load", NAME, str(file), *PATIENTLY)
    assert answer.returncode == 1
    assert f"gives no parameters for {NAME}, only for: /other" in answer.stderr
