# SPDX-License-Identifier: MIT
"""What lies outside the subset, or is wrong in ROS too, is refused with a reason."""

# mypy: disable-error-code="call-arg"
from __future__ import annotations

import importlib
import typing

import pytest
from launch import LaunchContext, LaunchDescription
from launch._outside_subset import OutsideSubsetError
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    GroupAction,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    TimerAction,
)
from launch.event_handlers import OnProcessExit
from launch.launch_description_sources import (
    InvalidPythonLaunchFileError,
    PythonLaunchDescriptionSource,
)
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("launch", "LaunchIntrospector"),
        ("launch.actions", "PushEnvironment"),
        ("launch.actions", "UnsetEnvironmentVariable"),
        ("launch.conditions", "LaunchConfigurationEquals"),
        ("launch.event_handlers", "OnProcessIO"),
        ("launch.events.process", "ProcessStdin"),
        ("launch.launch_description_sources", "AnyLaunchDescriptionSource"),
        ("launch.substitutions", "Command"),
        ("launch_ros.actions", "ComposableNodeContainer"),
        ("launch_ros.actions", "LifecycleNode"),
        ("launch_ros.actions", "SetParameter"),
        ("launch_ros.descriptions", "ComposableNode"),
        ("launch_ros.parameter_descriptions", "Parameter"),
    ],
)
def test_importing_what_only_ros_has_says_so(module: str, name: str) -> None:
    with pytest.raises(ImportError, match="outside the subset") as refusal:
        exec(f"from {module} import {name}")
    assert "ROS" in str(refusal.value)


def test_a_name_of_a_later_ros_is_not_said_to_be_in_this_one() -> None:
    with pytest.raises(ImportError, match="neither here nor in the ROS release"):
        exec("from launch.actions import ForLoop")


@pytest.mark.parametrize("module", ["launch.frontend", "launch_ros.events.lifecycle"])
def test_importing_a_module_that_only_ros_has_says_so(module: str) -> None:
    with pytest.raises(ImportError, match="outside the subset"):
        importlib.import_module(module)


def test_a_misspelt_name_gets_the_right_one_suggested() -> None:
    with pytest.raises(ImportError, match="Did you mean 'GroupAction'"):
        exec("from launch.actions import GroupActions")


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: LaunchDescription(["text"]), "text"),
        (lambda: LaunchDescription(LogInfo(msg="x")), "list of actions"),
        (lambda: LaunchDescription([[LogInfo(msg="x")]]), "expected actions"),
        (lambda: GroupAction(["text"]), "text"),
        (lambda: GroupAction([], scoped="true"), "scoped must be a bool"),
        (lambda: LogInfo(msg=5), "expected text"),
        (lambda: LogInfo(msg="x", condition="true"), "condition must be a Condition"),
        (lambda: TimerAction(period=5, actions=[]), "'period' must be of type"),
        (lambda: EmitEvent(event="shutdown"), "launch event"),
        (lambda: OpaqueFunction(function="f"), "callable"),
        (lambda: OpaqueFunction(function=print, kwargs=[("end", "")]), "kwargs must be a dict"),
        (lambda: RegisterEventHandler("handler"), "event handler"),
        (lambda: OnProcessExit(target_action="talker", on_exit=LogInfo(msg="x")), "target_action"),
        (lambda: OnProcessExit(on_exit=[]), "the list of actions is empty"),
        (lambda: ExecuteProcess(cmd=["ls"], on_exit=[]), "on_exit is an empty list"),
        (lambda: OnProcessExit(on_exit=["text"]), "on_exit must be"),
        (lambda: DeclareLaunchArgument("x", choices="ab"), "list of str"),
        (lambda: DeclareLaunchArgument("x", default_value=5), "expected text"),
        (lambda: DeclareLaunchArgument("x", defualt_value="5"), "defualt_value"),
        (lambda: ExecuteProcess(cmd="ls -l"), "one item per word"),
        (lambda: ExecuteProcess(cmd=["ls"], outptu="screen"), "outptu"),
        (lambda: ExecuteProcess(cmd=["sleep", 5]), "expected text"),
        (lambda: PathJoinSubstitution(["a", [LaunchConfiguration("x"), ".yaml"]]), "component"),
        (lambda: Node(executable="e", paramters=[]), "unexpected keyword argument 'paramters'"),
        (lambda: Node(executable="e", parameters={"a": 1}), "must be a list"),
        (lambda: Node(executable="e", parameters=({"a": 1},)), "must be a list"),
        (lambda: Node(executable="e", ros_arguments=("--log-level", "info")), "must be a list"),
        (lambda: Node(executable="e", parameters=[5]), "dictionary or the path"),
        (lambda: Node(executable="e", parameters=[{"a": []}]), "empty list"),
        (lambda: Node(executable="e", parameters=[{"a": object()}]), "unexpected type"),
        (lambda: Node(executable="e", remappings={"a": "b"}), "list of pairs"),
        (lambda: Node(executable="e", remappings=["a:=b"]), "pair"),
        (lambda: Node(executable="e", arguments="--flag"), "one item per word"),
        (lambda: Node(executable="e", respawn="true"), "not an instance"),
        (
            lambda: IncludeLaunchDescription(
                PythonLaunchDescriptionSource("x"), launch_arguments={"a": "b"}
            ),
            "items()",
        ),
        (lambda: ParameterValue("5", value_type=int), "not an instance"),
    ],
)
def test_wrong_types_and_keywords_are_refused_where_they_are_written(make, complaint) -> None:
    with pytest.raises(TypeError) as refusal:
        make()
    assert complaint in str(refusal.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: IncludeLaunchDescription("other.launch.py"),
        lambda: ParameterFile("p.yaml", allow_substs=True),
        lambda: PythonLaunchDescriptionSource("x.launch.xml").get_launch_description(
            LaunchContext()
        ),
        lambda: PythonLaunchDescriptionSource("x.launch.yaml").get_launch_description(
            LaunchContext()
        ),
    ],
)
def test_what_only_ros_accepts_is_refused_as_outside_the_subset(make) -> None:
    with pytest.raises(OutsideSubsetError, match="outside the subset of launch"):
        make()


def load(tmp_path, source: str):
    path = tmp_path / "x.launch.py"
    path.write_text(source)
    return PythonLaunchDescriptionSource(str(path)).get_launch_description(LaunchContext())


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import os\ndef generate_launch_description(:\n    pass\n", "line 2: SyntaxError"),
        ("x = 1\n\nraise ValueError('bad day')\n", "line 3: ValueError: bad day"),
        ("def generate_launch_description():\n    return 1 / 0\n", "line 2: ZeroDivisionError"),
        ("x = 1\n", "does not contain the required function 'generate_launch_description()'"),
        ("def generate_launch_description():\n    return []\n", "must return a LaunchDescription"),
        (
            "from launch.actions import PushEnvironment\n",
            "line 1: ImportError: 'launch.actions.PushEnvironment'",
        ),
    ],
)
def test_a_broken_launch_file_names_file_line_and_error(tmp_path, source, complaint) -> None:
    with pytest.raises(InvalidPythonLaunchFileError) as refusal:
        load(tmp_path, source)
    assert "x.launch.py" in str(refusal.value)
    assert complaint in str(refusal.value)


def test_loading_a_launch_file_leaves_no_byte_code_beside_it(tmp_path) -> None:
    load(tmp_path, "from launch import LaunchDescription as generate_launch_description\n")
    assert [path.name for path in tmp_path.iterdir()] == ["x.launch.py"]


def test_a_missing_launch_file_is_named(tmp_path) -> None:
    source = PythonLaunchDescriptionSource(str(tmp_path / "none.launch.py"))
    with pytest.raises(InvalidPythonLaunchFileError, match=r"none\.launch\.py.*No such file"):
        source.get_launch_description(LaunchContext())


@pytest.mark.parametrize(
    ("text", "value_type", "value"),
    [
        ("5", None, 5),
        ("5", str, "5"),
        ("5", float, 5.0),
        ("true", bool, True),
        ("[1, 2]", typing.List[int], [1, 2]),  # noqa: UP006 (what launch files write)
        ("hello", None, "hello"),
    ],
)
def test_a_typed_parameter_value_converts_the_text(text, value_type, value) -> None:
    context = LaunchContext()
    context.launch_configurations["x"] = text
    evaluated = ParameterValue(LaunchConfiguration("x"), value_type=value_type).evaluate(context)
    assert evaluated == value
    assert type(evaluated) is type(value)


@pytest.mark.parametrize(("text", "value_type"), [("abc", int), ("1", bool), ("[1, a]", None)])
def test_a_text_that_does_not_fit_the_type_is_refused(text, value_type) -> None:
    context = LaunchContext()
    context.launch_configurations["x"] = text
    with pytest.raises(ValueError, match=r"abc|1|a"):
        ParameterValue(LaunchConfiguration("x"), value_type=value_type).evaluate(context)
