# SPDX-License-Identifier: MIT
"""The ros2 command against real nodes over real DDS, and what it says to bad input."""

from __future__ import annotations

import re
import signal

import pytest
import yaml
from families import wait_until

FIBONACCI = ("/fibonacci", "test_msgs/action/Fibonacci")
ENABLE = ("/talker/enable", "std_srvs/srv/SetBool")


# Without nodes


def test_help_lists_the_commands(call_ros2) -> None:
    answer = call_ros2("--help")
    assert answer.returncode == 0
    for command in [
        "action",
        "interface",
        "launch",
        "lifecycle",
        "node",
        "param",
        "pkg",
        "run",
        "service",
        "topic",
    ]:
        assert re.search(rf"^  {command} ", answer.stdout, re.M)


@pytest.mark.parametrize(
    "words", [("bag", "record"), ("topic", "bw", "/x"), ("topic", "list", "--frobnicate")]
)
def test_what_is_outside_the_subset_is_said_to_be(call_ros2, words) -> None:
    answer = call_ros2(*words)
    assert answer.returncode == 2
    assert "outside the subset of the ros2 command" in answer.stderr


def test_an_unknown_command_is_refused_with_the_known_ones(call_ros2) -> None:
    answer = call_ros2("tpic", "list")
    assert answer.returncode == 2
    assert "unknown command 'tpic'" in answer.stderr


def test_the_table_in_the_readme_is_that_of_the_parsers(repository_root) -> None:
    from pip_ros2_cli.command_table import BEGIN, END, command_table

    text = (repository_root / "ros2_ws" / "pip_ros2" / "README.md").read_text()
    written = text.partition(BEGIN)[2].partition(END)[0].strip()
    assert written == command_table(), "run python -m pip_ros2_cli.command_table"


def test_a_launch_argument_without_a_value_is_malformed_as_in_ros(call_ros2) -> None:
    answer = call_ros2("launch", "pip_ros2_demo", "pair.launch.py", "text:=")
    assert answer.returncode == 1
    assert "malformed launch argument 'text:=', expected format '<name>:=<value>'" in answer.stderr


def test_packages_prefixes_and_executables_are_listed(call_ros2, demo_prefix) -> None:
    assert "pip_ros2_demo" in call_ros2("pkg", "list").stdout.split()
    assert call_ros2("pkg", "prefix", "pip_ros2_demo").stdout == f"{demo_prefix}\n"
    share = call_ros2("pkg", "prefix", "--share", "pip_ros2_demo").stdout
    assert share == f"{demo_prefix}/share/pip_ros2_demo\n"
    executables = call_ros2("pkg", "executables", "pip_ros2_demo").stdout
    assert executables == "".join(
        f"pip_ros2_demo {n}\n" for n in ("exit_with", "listener", "machine", "talker")
    )
    unknown = call_ros2("pkg", "prefix", "pip_ros2_demos")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "Did you mean 'pip_ros2_demo'" in unknown.stderr


def test_run_passes_arguments_and_the_exit_code_on(run_ros2) -> None:
    answer = run_ros2("run", "pip_ros2_demo", "exit_with", "5", "--ros-args", "-r", "a:=b")
    assert answer.returncode == 5
    assert "['5', '--ros-args', '-r', 'a:=b']" in answer.stdout


def test_run_of_an_unknown_executable_lists_the_known_ones(call_ros2) -> None:
    answer = call_ros2("run", "pip_ros2_demo", "exit_width")
    assert answer.returncode == 1
    assert "exit_with, listener, machine, talker" in answer.stderr


def test_a_nested_definition_is_shown_indented_by_tabs(call_ros2) -> None:
    shown = call_ros2("interface", "show", "geometry_msgs/msg/PoseStamped", "--no-comments").stdout
    assert shown == (
        "std_msgs/Header header\n"
        "\tbuiltin_interfaces/Time stamp\n"
        "\t\tint32 sec\n"
        "\t\tuint32 nanosec\n"
        "\tstring frame_id\n"
        "Pose pose\n"
        "\tPoint position\n"
        "\t\tfloat64 x\n\t\tfloat64 y\n\t\tfloat64 z\n"
        "\tQuaternion orientation\n"
        "\t\tfloat64 x 0\n\t\tfloat64 y 0\n\t\tfloat64 z 0\n\t\tfloat64 w 1\n"
    )


def test_a_prototype_shows_default_values(call_ros2) -> None:
    shown = call_ros2("interface", "proto", "geometry_msgs/msg/Point").stdout
    assert shown == '"x: 0.0\ny: 0.0\nz: 0.0\n"\n'
    assert call_ros2("interface", "proto", "std_srvs/srv/SetBool", "--no-quotes").stdout == (
        "data: false\n\n"
    )


def test_an_action_definition_keeps_its_comments_and_separators(call_ros2) -> None:
    shown = call_ros2("interface", "show", "test_msgs/action/Fibonacci").stdout
    assert shown.count("---\n") == 2
    assert "int32 order\n" in shown
    assert "#" in shown


def test_an_unknown_definition_lists_the_known_ones(call_ros2) -> None:
    answer = call_ros2("interface", "show", "std_srvs/srv/SetBol")
    assert answer.returncode == 1
    assert "Empty, SetBool, Trigger" in answer.stderr


def test_interfaces_are_listed_by_kind(call_ros2) -> None:
    listed = call_ros2("interface", "list").stdout
    messages, _, rest = listed.partition("Services:\n")
    services, _, actions = rest.partition("Actions:\n")
    assert messages.startswith("Messages:\n")
    assert "    std_msgs/msg/String\n" in messages
    assert "    std_srvs/srv/SetBool\n" in services
    assert "    test_msgs/action/Fibonacci\n" in actions


# With the demo's nodes

pytestmark = pytest.mark.ros


def test_launch_arguments_files_remappings_includes_and_conditions_work_together(
    demo_launch,
) -> None:
    assert "[talker-1] talker is ready as /talker" in demo_launch.lines
    assert "[listener-2] got yo: yo" in demo_launch.lines


def test_a_condition_leaves_the_include_out_and_ctrl_c_leaves_no_process(start, until_dead) -> None:
    launch = start("launch", "pip_ros2_demo", "pair.launch.py", "listen:=false")
    pid = int(re.findall(r"\d+", launch.wait_for("process started"))[-1])
    launch.wait_for("talker is ready")
    launch.signal(signal.SIGINT)
    assert launch.finish() == 0
    until_dead(pid, within_s=0.0)
    assert "listener" not in launch.output
    launch.wait_for("[INFO] [talker-1]: process has finished cleanly")


def test_nodes_are_listed_by_full_name(demo_launch, eventually) -> None:
    eventually("node", "list", until=lambda text: text == "/left/ear\n/talker\n")


def test_topics_are_listed_with_their_types(demo_launch, eventually) -> None:
    # Discovery brings endpoints one by one, so both are waited for.
    wanted = {"/conversation [std_msgs/msg/String]", "/numbers [std_msgs/msg/Float64MultiArray]"}
    listed = eventually("topic", "list", "-t", until=lambda text: wanted <= set(text.splitlines()))
    lines = listed.splitlines()
    assert not any(line.startswith("/chatter") for line in lines), "it is remapped"


def test_topic_info_counts_endpoints_and_shows_their_qos(demo_launch, eventually) -> None:
    counts = "Type: std_msgs/msg/String\nPublisher count: 1\nSubscription count: 1\n"
    eventually("topic", "info", "conversation", until=lambda text: text == counts)
    talker = "Node name: talker\nNode namespace: /\n"
    verbose = eventually("topic", "info", "-v", "/numbers", until=lambda text: talker in text)
    assert "Endpoint type: PUBLISHER\n" in verbose
    assert "  Reliability: BEST_EFFORT\n" in verbose


def test_topic_info_of_an_unknown_topic_fails(demo_launch, run_ros2) -> None:
    answer = run_ros2("topic", "info", "/nothing", "--spin-time", "1")
    assert answer.returncode == 1
    assert "Unknown topic '/nothing'. Topics seen: " in answer.stderr


def test_echo_once_prints_one_message_as_yaml(demo_launch, run_ros2) -> None:
    answer = run_ros2("topic", "echo", "--once", "/conversation")
    assert (answer.returncode, answer.stdout) == (0, "data: yo\n---\n")


def test_echo_matches_a_best_effort_publisher_and_truncates(demo_launch, run_ros2) -> None:
    shown = run_ros2("topic", "echo", "--once", "-l", "3", "/numbers").stdout
    expected = {"layout": {"dim": [], "data_offset": 0}, "data": [0.0, 1.0, 2.0, "..."]}
    [message, end] = yaml.safe_load_all(shown)
    assert (message, end) == (expected, None)


@pytest.mark.slow
def test_echo_shows_sizes_or_one_field_on_demand(demo_launch, run_ros2) -> None:
    sizes = run_ros2("topic", "echo", "--once", "--no-arr", "/numbers").stdout
    assert "data: '<sequence type: double, length: 200>'\n" in sizes
    assert (
        run_ros2("topic", "echo", "--once", "--field", "data[7]", "/numbers").stdout == "7.0\n---\n"
    )
    wrong = run_ros2("topic", "echo", "--once", "--field", "dta", "/numbers")
    assert wrong.returncode == 1
    assert "Invalid field 'dta': Float64MultiArray has layout, data" in wrong.stderr


def test_echo_with_an_incompatible_qos_times_out_with_a_reason(demo_launch, run_ros2) -> None:
    options = ("--qos-reliability", "reliable", "--timeout", "1")
    answer = run_ros2("topic", "echo", "--once", *options, "/numbers")
    assert answer.returncode == 1
    assert "no message on /numbers for 1 s (QoS asked for: RELIABLE" in answer.stderr


def test_echo_of_an_unpublished_topic_asks_for_the_type(demo_launch, run_ros2) -> None:
    answer = run_ros2("topic", "echo", "/nothing", "--spin-time", "0.5")
    assert answer.returncode == 1
    assert "does not appear to be published yet" in answer.stderr


def test_hz_measures_the_rate_of_the_parameter_file(demo_launch, start) -> None:
    meter = start("topic", "hz", "/conversation", "--window", "50")

    def rate_hz() -> float:
        return float(re.findall(r"average rate: ([\d.]+)", meter.output)[-1])

    # The parameter file says 50 Hz, the node's default is 20; a busy machine may need some reports.
    meter.wait_for("average rate")
    wait_until(lambda: 30.0 < rate_hz() < 75.0, 90.0, "about 50 Hz")
    assert re.search(
        r"min: \d\.\d{3}s max: \d\.\d{3}s std dev: \d\.\d{5}s window: \d+", meter.output
    )
    meter.signal(signal.SIGINT)
    assert meter.finish() == 130


def test_services_are_listed_and_called(demo_launch, run_ros2, eventually) -> None:
    wanted = "/talker/enable [std_srvs/srv/SetBool]\n"
    eventually("service", "list", "-t", until=lambda text: wanted in text)
    answer = run_ros2("service", "call", *ENABLE, "{data: true}")
    assert answer.returncode == 0
    assert answer.stdout == (
        "requester: making request: std_srvs.srv.SetBool_Request(data=True)\n\n"
        "response:\nstd_srvs.srv.SetBool_Response(success=True, message='enabled')\n\n"
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((*ENABLE, "{dta: true}"), "has no field 'dta'. Did you mean 'data'?"),
        ((*ENABLE, "{data: 5}"), "takes boolean, got 5"),
        ((*ENABLE, "{data: "), "not valid YAML"),
        ((*ENABLE, "5"), "YAML dictionary"),
        ((ENABLE[0], "std_srvs/srv/SetBol"), "Empty, SetBool, Trigger"),
        ((ENABLE[0], "no_pkg/srv/X"), "no Python module 'no_pkg.srv'"),
    ],
)
def test_a_bad_service_call_is_explained_before_anything_is_sent(
    call_ros2, words, complaint
) -> None:
    answer = call_ros2("service", "call", *words)
    assert answer.returncode == 1
    assert complaint in answer.stderr


def test_a_service_is_not_called_with_another_type_than_it_has(demo_launch, run_ros2) -> None:
    answer = run_ros2("service", "call", ENABLE[0], "std_srvs/srv/Trigger", "--spin-time", "30")
    assert answer.returncode == 1
    assert "has the type std_srvs/srv/SetBool, not std_srvs/srv/Trigger" in answer.stderr


@pytest.mark.slow
def test_an_action_goal_runs_with_feedback_to_its_result(demo_launch, run_ros2, eventually) -> None:
    eventually("action", "list", "-t", until=lambda text: text == " [".join(FIBONACCI) + "]\n")
    answer = run_ros2("action", "send_goal", "--feedback", *FIBONACCI, "{order: 3}")
    assert answer.returncode == 0
    assert "Sending goal:\n    order: 3\n" in answer.stdout
    assert re.search(r"^Goal accepted with ID: [0-9a-f]{32}$", answer.stdout, re.M)
    assert answer.stdout.count("Feedback:\n") == 3
    result = answer.stdout.partition("Result:\n")[2]
    assert yaml.safe_load(result.partition("Goal")[0]) == {"sequence": [0, 1, 1, 2, 3]}
    assert result.endswith("Goal finished with status: SUCCEEDED\n")


def test_a_rejected_goal_is_a_failure(demo_launch, run_ros2) -> None:
    answer = run_ros2("action", "send_goal", *FIBONACCI, "{order: 101}")
    assert answer.returncode == 1
    assert "Goal was rejected." in answer.stdout


def test_ctrl_c_cancels_a_goal(demo_launch, start) -> None:
    goal = start("action", "send_goal", *FIBONACCI, "{order: -1}")
    goal.wait_for("Goal accepted")
    goal.signal(signal.SIGINT)
    assert goal.finish() == 130
    goal.wait_for("Goal canceled.")


def test_parameters_are_listed(demo_launch, run_ros2, eventually) -> None:
    one = [line.strip() for line in run_ros2("param", "list", "/talker").stdout.splitlines()]
    assert {"text", "rate_hz", "gains", "use_sim_time"} <= set(one)
    eventually(
        "param",
        "list",
        until=lambda text: "/talker:\n" in text and "/left/ear:\n  marker\n" in text,
    )


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (("/talker", "text"), "String value is: yo\n"),
        (("talker", "rate_hz"), "Double value is: 50.0\n"),
        (("/talker", "gains"), "Double values are: [0.5, 0.25, 0.125]\n"),
        (("/left/ear", "use_sim_time"), "Boolean value is: False\n"),
        (("/left/ear", "marker", "--hide-type"), "got yo:\n"),
    ],
)
def test_parameters_have_the_values_of_launch_file_and_yaml(
    demo_launch, run_ros2, words, value
) -> None:
    assert run_ros2("param", "get", *words).stdout == value


@pytest.mark.slow
def test_a_parameter_is_set_with_the_type_it_has(demo_launch, run_ros2) -> None:
    answer = run_ros2("param", "set", "/talker", "gains", "[1, 2]")
    assert (answer.returncode, answer.stdout) == (0, "Set parameter successful\n")
    assert run_ros2("param", "get", "/talker", "gains", "--hide-type").stdout == "[1.0, 2.0]\n"
    run_ros2("param", "set", "/talker", "gains", "[0.5, 0.25, 0.125]")


def test_a_parameter_out_of_its_range_is_refused_with_the_reason(demo_launch, run_ros2) -> None:
    answer = run_ros2("param", "set", "/talker", "rate_hz", "1000")
    assert answer.returncode == 1
    assert "Setting parameter failed: " in answer.stderr
    assert "rate_hz" in answer.stderr


def test_unknown_nodes_and_parameters_are_named(demo_launch, run_ros2) -> None:
    node = run_ros2("param", "get", "/taler", "text", "--spin-time", "1")
    assert node.returncode == 1
    assert "Node not found: '/taler'. Nodes seen: " in node.stderr
    parameter = run_ros2("param", "get", "/talker", "txt")
    assert parameter.returncode == 1
    assert "Parameters of /talker: gains, rate_hz" in parameter.stderr
