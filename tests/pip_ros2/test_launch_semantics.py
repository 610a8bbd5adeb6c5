# SPDX-License-Identifier: MIT
"""What launch files mean: substitutions, conditions, scopes, arguments, events, in the process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch import LaunchContext, LaunchDescription, LaunchService
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    GroupAction,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    SetEnvironmentVariable,
    SetLaunchConfiguration,
    Shutdown,
    TimerAction,
)
from launch.conditions import IfCondition, InvalidConditionExpressionError, UnlessCondition
from launch.event_handlers import OnProcessExit, OnProcessStart, OnShutdown
from launch.events import Shutdown as ShutdownEvent
from launch.events import matches_action
from launch.events.process import ShutdownProcess
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import (
    EnvironmentVariable,
    LaunchConfiguration,
    PathJoinSubstitution,
    PythonExpression,
    SubstitutionFailure,
    TextSubstitution,
    ThisLaunchFileDir,
)
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions


@pytest.fixture(autouse=True)
def quiet_and_contained(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Keep log files out of the home folder, and the environment as it was."""
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path_factory.mktemp("log")))
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


class Probe:
    """Records texts while a launch runs."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, *parts: object) -> OpaqueFunction:
        subs = normalize_to_list_of_substitutions(parts)
        return OpaqueFunction(
            function=lambda context: self.seen.append(perform_substitutions(context, subs))
        )


def run(*entities: object) -> tuple[int, LaunchService]:
    service = LaunchService()
    service.include_launch_description(LaunchDescription(entities))
    return service.run(), service


def python(code: str, **keywords: object) -> ExecuteProcess:
    return ExecuteProcess(cmd=[sys.executable, "-c", code], **keywords)


def text(substitution: object, **configurations: str) -> str:
    context = LaunchContext()
    context.launch_configurations.update(configurations)
    return perform_substitutions(context, normalize_to_list_of_substitutions(substitution))


# Substitutions


@settings(deadline=None)
@given(st.lists(st.text(max_size=8), max_size=6))
def test_a_list_of_texts_stands_for_their_concatenation(parts: list[str]) -> None:
    assert text(parts) == "".join(parts)


def test_text_and_substitutions_concatenate_in_order() -> None:
    parts = ["<", LaunchConfiguration("a"), "|", TextSubstitution(text="t"), ">"]
    assert text(parts, a="1") == "<1|t>"


def test_a_launch_configuration_is_looked_up_when_performed_and_may_have_a_default() -> None:
    assert text(LaunchConfiguration("rate", default=5)) == "5"
    assert text(LaunchConfiguration("rate", default=5), rate="7") == "7"
    assert text(LaunchConfiguration(["ra", "te"]), rate="7") == "7"
    with pytest.raises(SubstitutionFailure, match="'rate' does not exist"):
        text(LaunchConfiguration("rate"))


def test_an_environment_variable_has_its_value_its_default_or_fails(monkeypatch) -> None:
    monkeypatch.setenv("EQUI_X", "here")
    monkeypatch.delenv("EQUI_Y", raising=False)
    assert text(EnvironmentVariable("EQUI_X")) == "here"
    assert text(EnvironmentVariable("EQUI_Y", default_value=["a", "b"])) == "ab"
    with pytest.raises(SubstitutionFailure, match="EQUI_Y"):
        text(EnvironmentVariable("EQUI_Y"))


def test_paths_are_joined_like_os_path_join() -> None:
    joined = PathJoinSubstitution([LaunchConfiguration("root"), "config", "a.yaml"])
    assert text(joined, root="/opt/x") == os.path.join("/opt/x", "config", "a.yaml")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (["1 + 2"], "3"),
        (["'", LaunchConfiguration("mode"), "' == 'sim'"], "True"),
        (["sqrt(", LaunchConfiguration("four"), ")"], "2.0"),
        (["math.floor(2.9)"], "2"),
        (["not ", LaunchConfiguration("flag")], "False"),
    ],
)
def test_a_python_expression_is_the_text_of_its_value(expression: list, value: str) -> None:
    assert text(PythonExpression(expression), mode="sim", four="4", flag="True") == value


def test_a_python_expression_sees_the_modules_it_names() -> None:
    assert text(PythonExpression("os.sep.join(['a', 'b'])", ["os"])) == "a/b"
    assert text(PythonExpression("os.sep", "os")) == "/"
    assert text(PythonExpression("os.sep", [LaunchConfiguration("module")]), module="os") == "/"


def test_a_python_expression_does_not_see_the_package_of_a_module_it_names() -> None:
    with pytest.raises(SubstitutionFailure, match="NameError"):
        text(PythonExpression("json.dumps(1)", ["json.encoder"]))


def test_a_python_expression_that_fails_shows_the_text_it_evaluated() -> None:
    with pytest.raises(SubstitutionFailure, match="'sim == 3' failed: NameError"):
        text(PythonExpression([LaunchConfiguration("mode"), " == 3"]), mode="sim")


# Conditions


@pytest.mark.parametrize("word", ["true", "True", " TRUE ", "1"])
def test_true_words_pass_if_and_stop_unless(word: str) -> None:
    assert IfCondition(word).evaluate(LaunchContext())
    assert not UnlessCondition(word).evaluate(LaunchContext())


@pytest.mark.parametrize("word", ["false", "FALSE", " 0 "])
def test_false_words_stop_if_and_pass_unless(word: str) -> None:
    assert not IfCondition(word).evaluate(LaunchContext())
    assert UnlessCondition(word).evaluate(LaunchContext())


@pytest.mark.parametrize("word", ["", "yes", "on", "2"])
def test_other_words_are_no_condition(word: str) -> None:
    with pytest.raises(InvalidConditionExpressionError, match="true"):
        IfCondition(word).evaluate(LaunchContext())


def test_an_action_whose_condition_fails_is_not_executed() -> None:
    probe = Probe()
    hidden = GroupAction([probe("hidden")], condition=IfCondition(LaunchConfiguration("c")))
    shown = GroupAction([probe("shown")], condition=UnlessCondition(LaunchConfiguration("c")))
    code, _ = run(DeclareLaunchArgument("c", default_value="false"), hidden, shown)
    assert (code, probe.seen) == (0, ["shown"])


# Arguments and scopes


def test_a_declared_default_applies_only_where_nothing_is_set() -> None:
    probe = Probe()
    run(
        SetLaunchConfiguration("given", "outside"),
        DeclareLaunchArgument("given", default_value="default"),
        DeclareLaunchArgument("free", default_value=["from ", LaunchConfiguration("given")]),
        probe(LaunchConfiguration("given"), ", ", LaunchConfiguration("free")),
    )
    assert probe.seen == ["outside, from outside"]


def test_a_required_argument_without_value_fails_the_launch(capsys) -> None:
    probe = Probe()
    code, _ = run(DeclareLaunchArgument("robot_ip", description="address"), probe("after"))
    assert (code, probe.seen) == (1, [])
    assert 'Required launch argument "robot_ip"' in capsys.readouterr().out


def test_a_value_that_is_not_among_the_choices_fails_the_launch(capsys) -> None:
    code, _ = run(
        SetLaunchConfiguration("mode", "slow"),
        DeclareLaunchArgument("mode", choices=["sim", "real"]),
    )
    output = capsys.readouterr().out
    assert code == 1
    assert '"mode" provided value "slow" is not valid' in output
    assert "['sim', 'real']" in output


def test_a_default_outside_the_choices_is_refused_when_written() -> None:
    with pytest.raises(RuntimeError, match="not among the choices"):
        DeclareLaunchArgument("mode", default_value="x", choices=["sim", "real"])


def test_a_scoped_group_keeps_its_changes_to_itself(monkeypatch) -> None:
    monkeypatch.setenv("EQUI_SCOPE", "outer")
    probe = Probe()
    shown = (LaunchConfiguration("x"), " ", EnvironmentVariable("EQUI_SCOPE"))
    run(
        SetLaunchConfiguration("x", "outer"),
        GroupAction(
            [
                probe(*shown),
                SetLaunchConfiguration("x", "inner"),
                SetEnvironmentVariable("EQUI_SCOPE", "inner"),
                probe(*shown),
            ]
        ),
        probe(*shown),
    )
    assert probe.seen == ["outer outer", "inner inner", "outer outer"]


def test_an_unscoped_group_leaves_its_changes_behind() -> None:
    probe = Probe()
    group = GroupAction([], scoped=False, launch_configurations={"x": "kept"})
    run(group, probe(LaunchConfiguration("x")))
    assert probe.seen == ["kept"]


def test_a_group_without_forwarding_sees_only_what_it_is_given(monkeypatch) -> None:
    probe = Probe()
    inside = probe(
        LaunchConfiguration("x", default="-"),
        LaunchConfiguration("y", default="-"),
        EnvironmentVariable("EQUI_LATE", default_value="-"),
    )
    monkeypatch.delenv("EQUI_LATE", raising=False)
    run(
        SetLaunchConfiguration("x", "1"),
        SetEnvironmentVariable("EQUI_LATE", "set"),
        GroupAction(
            [inside], forwarding=False, launch_configurations={"y": LaunchConfiguration("x")}
        ),
        probe(LaunchConfiguration("x"), EnvironmentVariable("EQUI_LATE")),
    )
    assert probe.seen == ["-1-", "1set"]


def test_what_a_group_without_forwarding_keeps_is_read_in_the_environment_of_the_start(
    monkeypatch,
) -> None:
    monkeypatch.setenv("EQUI_SCOPE", "start")
    probe = Probe()
    run(
        SetEnvironmentVariable("EQUI_SCOPE", "later"),
        GroupAction(
            [probe(LaunchConfiguration("kept"))],
            forwarding=False,
            launch_configurations={"kept": EnvironmentVariable("EQUI_SCOPE")},
        ),
    )
    assert probe.seen == ["start"]


def write_launch_file(folder: Path, name: str, entities: str) -> str:
    path = folder / name
    path.write_text(
        "from launch import LaunchDescription\n"
        "from launch.actions import *\n"
        "from launch.actions import DeclareLaunchArgument, SetLaunchConfiguration\n"
        f"def generate_launch_description():\n    return LaunchDescription([{entities}])\n"
    )
    return str(path)


def test_an_include_has_no_scope_of_its_own(tmp_path: Path) -> None:
    path = write_launch_file(
        tmp_path,
        "inner.launch.py",
        "DeclareLaunchArgument('a', default_value='x'), SetLaunchConfiguration('b', 'set inside')",
    )
    probe = Probe()
    include = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(path), launch_arguments=[("a", "given")]
    )
    run(include, probe(LaunchConfiguration("a"), ", ", LaunchConfiguration("b")))
    assert probe.seen == ["given, set inside"]


def test_an_include_in_a_scoped_group_leaves_nothing_behind(tmp_path: Path) -> None:
    path = write_launch_file(tmp_path, "inner.launch.py", "SetLaunchConfiguration('b', 'inside')")
    probe = Probe()
    include = IncludeLaunchDescription(PythonLaunchDescriptionSource(path))
    run(GroupAction([include]), probe(LaunchConfiguration("b", default="gone")))
    assert probe.seen == ["gone"]


def test_an_include_that_misses_a_required_argument_fails_before_it_is_visited(
    tmp_path: Path, capsys
) -> None:
    path = write_launch_file(tmp_path, "inner.launch.py", "DeclareLaunchArgument('ip')")
    code, _ = run(
        SetLaunchConfiguration("ip", "set, but not given to the include"),
        IncludeLaunchDescription(PythonLaunchDescriptionSource(path)),
    )
    assert code == 1
    assert "missing required argument 'ip'" in capsys.readouterr().out


def test_the_folder_of_the_launch_file_is_that_of_the_file_being_visited(tmp_path: Path) -> None:
    inner = tmp_path / "sub"
    inner.mkdir()
    write = "DeclareLaunchArgument('dir', default_value=ThisLaunchFileDir())"
    path = write_launch_file(inner, "inner.launch.py", write)
    Path(path).write_text(
        "from launch.substitutions import ThisLaunchFileDir\n" + Path(path).read_text()
    )
    probe = Probe()
    after = OpaqueFunction(function=lambda context: ThisLaunchFileDir().perform(context))
    code, _ = run(
        IncludeLaunchDescription(PythonLaunchDescriptionSource(path)),
        probe(LaunchConfiguration("dir")),
        after,
    )
    assert probe.seen == [str(inner)]
    assert code == 1, "outside of a launch file the substitution fails"


def test_arguments_of_included_files_are_declared_arguments_too(tmp_path: Path) -> None:
    path = write_launch_file(
        tmp_path, "inner.launch.py", "DeclareLaunchArgument('deep', default_value='1')"
    )
    description = LaunchDescription(
        [
            DeclareLaunchArgument("top", default_value="0"),
            GroupAction(
                [IncludeLaunchDescription(PythonLaunchDescriptionSource(path))],
                condition=IfCondition("true"),
            ),
        ]
    )
    arguments = {a.name: a._conditionally_included for a in description.get_launch_arguments()}
    assert arguments == {"top": False, "deep": True}


# Functions, timers and events


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
