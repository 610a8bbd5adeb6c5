# SPDX-License-Identifier: MIT
"""Law: the launch files say nothing that ROS's own launch would not understand.

They must run under the `launch` of this project and under ROS's. The table below was made from the
signatures in the source of launch 3.4 and launch_ros 0.26 (ROS 2 Jazzy), not from our subset; the
launch files are held against it by their syntax alone, and the table against whichever `launch` is
installed here.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LAUNCH_FILES = sorted((REPOSITORY / "launch").glob("*.launch.py"))
FRONT_DOOR = REPOSITORY / "ros2_ws/src/equi_policy/launch/sim2real.launch.py"
BRINGUP = REPOSITORY / "ros2_ws/src/equi_bringup/equi_bringup"
SHARED_PARTS = [BRINGUP / name for name in ("cell_launch.py", "failures.py", "operator_side.py")]
DEMO_FILES = sorted((REPOSITORY / "tests/pip_ros2/demo_package/launch").glob("*.launch.py"))

ACTION = {"condition"}
PROCESS = ACTION | {
    "additional_env",
    "cached_output",
    "cwd",
    "emulate_tty",
    "env",
    "log_cmd",
    "name",
    "on_exit",
    "output",
    "output_format",
    "prefix",
    "respawn",
    "respawn_delay",
    "respawn_max_retries",
    "shell",
    "sigkill_timeout",
    "sigterm_timeout",
}


@dataclass(frozen=True)
class Symbol:
    """How something of ROS's launch is called, and what of it a launch file may read."""

    positional: tuple[str, ...] = ()
    """Names of the arguments that may be given by position, in order."""
    keywords: frozenset[str] = frozenset()
    """Names of those that must be given by name."""
    attributes: frozenset[str] = frozenset()


def symbol(
    *positional: str, keywords: Set[str] = frozenset(), attributes: Set[str] = frozenset()
) -> Symbol:
    return Symbol(positional, frozenset(keywords), frozenset(attributes))


ROS = {
    "launch": {
        "LaunchContext": symbol(keywords={"argv", "noninteractive"}),
        "LaunchDescription": symbol("initial_entities", keywords={"deprecated_reason"}),
    },
    "launch.actions": {
        "DeclareLaunchArgument": symbol(
            "name", keywords=ACTION | {"default_value", "description", "choices"}
        ),
        "EmitEvent": symbol(keywords=ACTION | {"event"}),
        "ExecuteProcess": symbol(keywords=PROCESS | {"cmd"}),
        "IncludeLaunchDescription": symbol(
            "launch_description_source", keywords=ACTION | {"launch_arguments"}
        ),
        "LogInfo": symbol(keywords=ACTION | {"msg"}),
        "OpaqueFunction": symbol(keywords=ACTION | {"function", "args", "kwargs"}),
        "RegisterEventHandler": symbol(
            "event_handler", keywords=ACTION, attributes={"event_handler"}
        ),
        "SetEnvironmentVariable": symbol("name", "value", keywords=ACTION),
        "TimerAction": symbol(keywords=ACTION | {"period", "actions", "cancel_on_shutdown"}),
    },
    "launch.conditions": {
        "IfCondition": symbol("predicate_expression"),
    },
    "launch.event_handlers": {
        "OnProcessExit": symbol(keywords={"target_action", "on_exit", "handle_once"}),
    },
    "launch.events": {
        "Shutdown": symbol(keywords={"reason", "due_to_sigint"}),
    },
    "launch.launch_description_sources": {
        "PythonLaunchDescriptionSource": symbol("launch_file_path"),
    },
    "launch.substitutions": {
        "LaunchConfiguration": symbol(
            "variable_name", keywords={"default"}, attributes={"perform"}
        ),
        "PathJoinSubstitution": symbol("substitutions", attributes={"perform"}),
    },
    "launch_ros.actions": {
        "Node": symbol(
            keywords=PROCESS
            | {
                "arguments",
                "exec_name",
                "executable",
                "namespace",
                "package",
                "parameters",
                "remappings",
                "ros_arguments",
            }
        ),
    },
    "launch_ros.parameter_descriptions": {
        "ParameterValue": symbol("value", keywords={"value_type"}),
    },
    "launch_ros.substitutions": {
        "ExecutableInPackage": symbol("executable", "package", attributes={"perform"}),
        "FindPackageShare": symbol("package", attributes={"perform"}),
    },
}
CONTEXT_ATTRIBUTES = {"argv", "environment", "is_shutdown", "launch_configurations", "locals"}
"""What a launch file may read of the context that is handed to its functions."""


def violations(source: str) -> list[str]:
    """Everything in a launch file that is not in the table."""
    tree = ast.parse(source)
    found, imported = [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            # Names read through a module (launch.actions.X) would escape this check.
            found += [f"import {a.name}" for a in node.names if a.name.split(".")[0] in PACKAGES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            for alias in node.names:
                known = ROS.get(node.module, {}).get(alias.name)
                if known is None:
                    found.append(f"from {node.module} import {alias.name}")
                else:
                    imported[alias.asname or alias.name] = known
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            known = imported.get(node.func.id)
            if known is not None:
                found += _wrong_arguments(node, known)
        elif isinstance(node, ast.Attribute):
            found += _wrong_attribute(node, imported)
    return found


PACKAGES = {module.split(".")[0] for module in ROS}


def _wrong_arguments(call: ast.Call, known: Symbol) -> list[str]:
    assert isinstance(call.func, ast.Name)
    name = call.func.id
    found = []
    if len(call.args) > len(known.positional):
        found.append(f"{name}: {len(call.args)} arguments by position")
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        found.append(f"{name}(*...)")
    for keyword in call.keywords:
        if keyword.arg is None:
            found.append(f"{name}(**...)")  # cannot be checked, so it is not allowed
        elif keyword.arg not in known.keywords | set(known.positional):
            found.append(f"{name}({keyword.arg}=)")
    return found


def _wrong_attribute(node: ast.Attribute, imported: dict[str, Symbol]) -> list[str]:
    owner = node.value
    if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name):
        known = imported.get(owner.func.id)
        if known is not None and node.attr not in known.attributes:
            return [f"{owner.func.id}(...).{node.attr}"]
    if isinstance(owner, ast.Name) and owner.id in imported:
        return [f"{owner.id}.{node.attr}"]
    if isinstance(owner, ast.Name) and owner.id == "context":
        return [] if node.attr in CONTEXT_ATTRIBUTES else [f"context.{node.attr}"]
    return []


@pytest.mark.parametrize(
    "path", [*LAUNCH_FILES, FRONT_DOOR, *SHARED_PARTS, *DEMO_FILES], ids=lambda path: path.name
)
def test_a_launch_file_uses_only_what_ros_documents(path):
    assert violations(path.read_text(encoding="utf-8")) == []


def test_there_are_launch_files_to_check():
    assert "sim2real.launch.py" in [path.name for path in LAUNCH_FILES]
    assert DEMO_FILES


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("import launch.actions", "import launch.actions"),
        ("from launch.actions import Respawn", "from launch.actions import Respawn"),
        ("from launch._process import x", "from launch._process import x"),
        ("from launch.actions import LogInfo\nLogInfo(text='x')", "LogInfo(text=)"),
        ("from launch.actions import LogInfo\nLogInfo('x')", "LogInfo: 1 arguments by position"),
        ("from launch.actions import LogInfo as L\nL(**given)", "L(**...)"),
        (
            "from launch.substitutions import LaunchConfiguration as C\nC('x').evaluate(context)",
            "C(...).evaluate",
        ),
        ("def start(context):\n    context._resources.close()", "context._resources"),
    ],
)
def test_the_check_sees_what_ros_would_not_understand(source, complaint):
    assert complaint in violations(source)


def accepted_names(kind: type) -> set[str]:
    """Names of everything that a class takes, followed through `**kwargs` to its bases."""
    names: set[str] = set()
    for owner in kind.__mro__:
        if "__init__" not in vars(owner):
            continue
        parameters = list(inspect.signature(vars(owner)["__init__"]).parameters.values())[1:]
        names |= {p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters):
            break
    return names


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in ROS.items() for name in names]
)
def test_the_installed_launch_takes_every_name_in_the_table(module, name):
    kind = getattr(importlib.import_module(module), name)
    wanted = {*ROS[module][name].positional, *ROS[module][name].keywords}
    assert wanted <= accepted_names(kind)
    assert all(hasattr(kind, attribute) for attribute in ROS[module][name].attributes)
