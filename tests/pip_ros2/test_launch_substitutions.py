# SPDX-License-Identifier: MIT
"""What texts in launch files stand for: substitutions, and the conditions that read them."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch import LaunchContext
from launch.actions import DeclareLaunchArgument, GroupAction
from launch.conditions import IfCondition, InvalidConditionExpressionError, UnlessCondition
from launch.substitutions import (
    EnvironmentVariable,
    LaunchConfiguration,
    PathJoinSubstitution,
    PythonExpression,
    SubstitutionFailure,
    TextSubstitution,
)
from launch.utilities import normalize_to_list_of_substitutions, perform_substitutions
from launch_probe import Probe, run

pytestmark = pytest.mark.usefixtures("quiet_and_contained")


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
