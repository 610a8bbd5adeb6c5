# SPDX-License-Identifier: MIT
"""Two real nodes, started by `ros2 launch`, talking over DDS with our own messages.

Given a launch file with arguments, a YAML parameter file, a remapping, an include and a condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from equi_interfaces.msg import DeltaCommand, ExecutedCommand
from families import PATIENCE_S, ManagedProcess, ProcessFamily, wait_until
from ros_domains import reserved_domain
from ros_origin import LAUNCH_IS_ROSS_OWN, patiently
from ros_probe import RosProbe

pytestmark = pytest.mark.ros

Start = Callable[..., ManagedProcess]


class Pair(NamedTuple):
    """The talker and the listener, up and talking in a domain of their own."""

    launched: ManagedProcess
    domain_id: int
    family: ProcessFamily

    def ros2(self, *words: str) -> ManagedProcess:
        """Start the ros2 command in the pair's domain."""
        return self.family.start(["ros2", *words], {"ROS_DOMAIN_ID": str(self.domain_id)})


# Discovery takes as long as it takes.
PATIENTLY = patiently(PATIENCE_S)


def wait_for_nodes(ros2: Start, *wanted: str) -> None:
    """List the nodes until they are these and no others."""
    lists: list[list[str]] = []

    def listed() -> bool:
        listing = ros2("node", "list")
        assert listing.wait_for_exit() == 0, listing.output
        lists.append(sorted(listing.output.split()))
        return lists[-1] == sorted(wanted)

    try:
        wait_until(listed, PATIENCE_S, f"a list of {', '.join(wanted)} and no other node")
    except AssertionError as error:
        raise AssertionError(f"{error}; the last one: {lists[-1:]}") from None


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """One pair for the tests that only look at it or talk to it."""
    family = ProcessFamily()
    with reserved_domain() as domain_id:
        launched = family.start(
            ["ros2", "launch", "equi_demo_nodes", "pair.launch.py"],
            {"ROS_DOMAIN_ID": str(domain_id)},
        )
        launched.wait_for_text(r"heard command \d+ in frame frame_of_yaml")
        yield Pair(launched, domain_id, family)
        family.close()


def test_the_launched_pair_talks_as_arguments_file_and_remapping_say(
    ros_launch: Start, ros_probe: RosProbe
) -> None:
    launched = ros_launch("equi_demo_nodes", "pair.launch.py", mode="fast", greeting="caught")
    # the include hands the argument on, the YAML file sets the frame
    launched.wait_for_text(r"caught command \d+ in frame frame_of_yaml")
    # the inline parameter beats the file
    launched.wait_for_text(r"talking at 50\.0 Hz")
    # the topic is the remapped one
    message = ros_probe.wait_for_message(DeltaCommand, "/demo/command")
    assert message.episode_id == "episode_of_yaml"
    assert message.translation.x == 0.01
    ros_probe.wait_for_node("/talker")
    ros_probe.wait_for_node("/listener")
    assert ros_probe.node_names() == {"/talker", "/listener"}
    answer = ros_probe.wait_for_message(ExecutedCommand, "/executed")
    assert answer.requested.episode_id == "episode_of_yaml"


def test_a_condition_leaves_the_listener_out(ros_launch: Start, ros_probe: RosProbe) -> None:
    launched = ros_launch("equi_demo_nodes", "pair.launch.py", with_listener="false")
    launched.wait_for_text(r"talking at 25\.0 Hz")
    ros_probe.wait_for_message(DeltaCommand, "/demo/command")
    ros_probe.wait_for_node("/talker")
    assert ros_probe.node_names() == {"/talker"}


def test_ctrl_c_ends_every_process_of_a_launch(ros_launch: Start, processes: ProcessFamily) -> None:
    launched = ros_launch("equi_demo_nodes", "pair.launch.py")
    launched.wait_for_text(r"heard command \d+")
    running = " ".join(processes.living().values())
    assert "talker_node" in running
    assert "listener_node" in running
    launched.press_ctrl_c()
    assert launched.wait_for_exit() == 0, launched.output
    wait_until(lambda: not processes.living(), PATIENCE_S, "the last process to vanish")


def test_two_domains_do_not_hear_each_other(pair: Pair, ros_probe: RosProbe, ros2: Start) -> None:
    wait_for_nodes(pair.ros2, "/listener", "/talker")
    wait_for_nodes(ros2, "/test_probe")


def test_topic_echo_prints_our_message(pair: Pair) -> None:
    echo = pair.ros2("topic", "echo", *PATIENTLY, "/demo/command")
    echo.wait_for_text(r"episode_id: '?episode_of_yaml")
    echo.wait_for_text(r"translation:\s+x: 0\.01")
    echo.press_ctrl_c()
    echo.wait_for_exit()


def test_topic_hz_measures_the_rate_and_param_set_changes_it(pair: Pair) -> None:
    def rate_hz(process: ManagedProcess) -> float | None:
        found = re.findall(r"average rate: ([\d.]+)", process.output)
        return float(found[-1]) if found else None

    hz = pair.ros2("topic", "hz", "/demo/command")
    wait_until(lambda: 20.0 < (rate_hz(hz) or 0.0) < 30.0, PATIENCE_S, "about 25 Hz")
    hz.press_ctrl_c()
    hz.wait_for_exit()

    change = pair.ros2("param", "set", *PATIENTLY, "/talker", "rate_hz", "5.0")
    assert change.wait_for_exit() == 0, change.output
    assert "Set parameter successful" in change.output
    pair.launched.wait_for_text(r"now talking at 5\.0 Hz")
    slower = pair.ros2("topic", "hz", "/demo/command")
    wait_until(lambda: 3.0 < (rate_hz(slower) or 0.0) < 8.0, PATIENCE_S, "about 5 Hz")

    asked = pair.ros2("param", "get", *PATIENTLY, "/talker", "rate_hz")
    assert asked.wait_for_exit() == 0
    assert "5.0" in asked.output


def test_a_parameter_outside_its_range_is_refused_and_the_node_goes_on(pair: Pair) -> None:
    change = pair.ros2("param", "set", *PATIENTLY, "/talker", "rate_hz", "1000.0")
    assert change.wait_for_exit() != 0 or "fail" in change.output.lower(), change.output
    echo = pair.ros2("topic", "echo", "--once", *PATIENTLY, "/demo/command")
    assert echo.wait_for_exit() == 0, echo.output


def test_service_call_answers(pair: Pair) -> None:
    call = pair.ros2(
        *("service", "call", "/reset_episode", "equi_interfaces/srv/ResetEpisode"),
        "{episode_id: first, seed: 7}",
    )
    assert call.wait_for_exit() == 0, call.output
    assert "accepted=True" in call.output
    assert "episode first has begun" in call.output


def test_a_refused_request_says_why(pair: Pair) -> None:
    call = pair.ros2(
        *("service", "call", "/reset_episode", "equi_interfaces/srv/ResetEpisode", "{}")
    )
    assert call.wait_for_exit() == 0, call.output
    assert "accepted=False" in call.output
    assert "episode_id is empty" in call.output


def test_action_send_goal_runs_to_its_end_with_feedback(pair: Pair) -> None:
    goal = pair.ros2(
        *("action", "send_goal", "--feedback", "/run_episode"),
        *("equi_interfaces/action/RunEpisode", "{episode_id: seven, max_steps: 7}"),
    )
    assert goal.wait_for_exit() == 0, goal.output
    assert "all 7 steps done" in goal.output
    assert "SUCCEEDED" in goal.output
    assert goal.output.count("phase: moving") == 7


def test_a_crashing_node_fails_the_launch_and_leaves_nothing(
    ros_launch: Start, processes: ProcessFamily
) -> None:
    launched = ros_launch("equi_demo_nodes", "crash.launch.py")
    code = launched.wait_for_exit()
    # ROS's own launch ends with 0 whatever its processes do, unless the launch file objects.
    assert code != 0 or LAUNCH_IS_ROSS_OWN, launched.output
    assert "this is what it is for" in launched.output
    assert "process has died" in launched.output
    assert processes.living() == {}


def test_an_unknown_choice_is_refused_before_anything_starts(
    ros_launch: Start, processes: ProcessFamily
) -> None:
    launched = ros_launch("equi_demo_nodes", "pair.launch.py", mode="sideways")
    assert launched.wait_for_exit() != 0
    assert "sideways" in launched.output
    assert "file" in launched.output
    assert "talking at" not in launched.output


def test_a_launch_file_is_found_by_its_path_too(
    ros_launch: Start, repository_root: Path, ros_probe: RosProbe
) -> None:
    folder = repository_root / "tests" / "fixtures" / "equi_demo_nodes" / "launch"
    launched = ros_launch(folder / "listener.launch.py", command_topic="elsewhere")
    launched.wait_for_text("listening")
    ros_probe.wait_for_node("/listener")
    # A node is seen before its topics are.
    wait_until(lambda: "/elsewhere" in ros_probe.topics(), PATIENCE_S, "the remapped topic")
