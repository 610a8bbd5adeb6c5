# SPDX-License-Identifier: MIT
"""Law: the launch files say nothing that ROS's own launch would not understand.

They must run under the `launch` of this project and under ROS's. The table below was made from the
signatures in the source of launch 3.4 and launch_ros 0.26 (ROS 2 Jazzy), not from our subset; the
launch files are held against it by their syntax alone, and the table against whichever `launch` is
installed here. What follows it visits the launch files without starting a process.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import tempfile
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from launch import LaunchContext, LaunchDescription
from launch.actions import ExecuteProcess, RegisterEventHandler
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch_ros.actions import Node

from equi_bringup.arguments import ArgumentError
from equi_core.contract import PolicyContract

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


# The launch files, visited ---------------------------------------------------------------------


def processes(entity, context: LaunchContext) -> list[ExecuteProcess]:
    """Every process that visiting an entity would start, in order; none is started.

    What an event handler would start comes where the handler is registered.
    """
    if isinstance(entity, ExecuteProcess):
        return [entity]
    yielded = list(entity.visit(context) or [])
    if isinstance(entity, RegisterEventHandler):
        ended_well = SimpleNamespace(returncode=0)
        yielded += entity.event_handler.handle(ended_well, context) or []
    return [process for item in yielded for process in processes(item, context)]


def label(process: ExecuteProcess) -> str:
    if isinstance(process, Node):
        return f"{process.node_package}/{process.node_executable}"
    return process.process_description.name[0].text


def started(name: str, **arguments: str) -> list[str]:
    """What a launch file starts, by package and executable, or by name."""
    context = LaunchContext()
    context.launch_configurations.update(arguments)
    source = PythonLaunchDescriptionSource(str(REPOSITORY / "launch" / name))
    description = source.get_launch_description(context)
    assert isinstance(description, LaunchDescription)
    return [label(process) for process in processes(description, context)]


@pytest.fixture
def model(tmp_path) -> str:
    PolicyContract(task="block_picking").save(tmp_path / "contract.json")
    return str(tmp_path)


CELL = [
    "ur_emulator",
    "equi_cell_sim/camera_node",
    "equi_cell_sim/camera_node",
    "equi_cell_sim/scene_node",
]
DESCRIPTION = ["equi_description/robot_state_publisher"]
ROBOT_SIDE = [
    "equi_control/rtde_driver_node",
    "equi_perception/depth_fusion_node",
    "equi_policy/policy_node",
]
MANAGER = "equi_ros/lifecycle_manager_node"


def test_the_simulated_system_starts_the_cell_waits_for_it_and_then_starts_the_robot_side(model):
    assert started("sim2real.launch.py", model=model) == [
        *CELL,
        "wait_for_the_cell",
        *DESCRIPTION,
        *ROBOT_SIDE,
        MANAGER,
    ]


def test_the_real_system_is_the_robot_side_alone(model):
    assert started("sim2real.launch.py", model=model, sim="false") == [
        *DESCRIPTION,
        *ROBOT_SIDE,
        MANAGER,
    ]


def test_the_cameras_of_a_real_cell_are_started_when_wanted(model, tmp_path):
    text = (REPOSITORY / "launch/cells/lab.yaml").read_text()
    cell = tmp_path / "mine.yaml"
    cell.write_text(text.replace('serial: ""', 'serial: "831612073525"'))
    names = started(
        "sim2real.launch.py", model=model, sim="false", cell=str(cell), cameras="realsense"
    )
    assert names[:2] == ["realsense2_camera/realsense2_camera_node"] * 2


def test_cameras_without_a_serial_and_cameras_of_the_simulated_cell_are_refused(model):
    with pytest.raises(ArgumentError, match=r"cell\.cam_left\.serial"):
        started("sim2real.launch.py", model=model, sim="false", cameras="realsense")
    with pytest.raises(ArgumentError, match="for a real cell"):
        started("sim2real.launch.py", model=model, cameras="realsense")


def test_the_view_brings_the_next_step_as_a_marker(model):
    assert started("description.launch.py", view="true") == [
        *DESCRIPTION,
        "equi_description/motion_marker_node",
    ]


def namespaces(name: str, monkeypatch, **configurations: str) -> dict[str, str]:
    """Namespace of every node of a launch file; what handlers start comes after the scope."""
    monkeypatch.setattr(ExecuteProcess, "execute", lambda self, context: None, raising=False)
    context = LaunchContext()
    context.launch_configurations.update(configurations)
    source = PythonLaunchDescriptionSource(str(REPOSITORY / "launch" / name))
    inner = [
        item
        for entity in source.get_launch_description(context).entities
        for item in entity.visit(context) or []
    ]
    context.launch_configurations.pop("ros_namespace", None)
    found = {}
    for node in (process for item in inner for process in processes(item, context)):
        if isinstance(node, Node):
            node.execute(context)
            found[node.node_name] = node.expanded_node_namespace
    return found


def test_all_nodes_are_in_the_namespace_that_was_pushed_around_the_include(model, monkeypatch):
    pushed = namespaces(
        "sim2real.launch.py", monkeypatch, model=model, episodes="1", ros_namespace="/hall"
    )
    assert len(pushed) == 9
    assert set(pushed.values()) == {"/hall"}


@pytest.mark.parametrize(
    ("pushed", "given", "namespace"),
    [("", "left", "/left"), ("/hall", "left", "/hall/left"), ("/hall", "/left", "/left")],
)
def test_all_nodes_are_in_the_namespace_of_the_argument(
    pushed, given, namespace, model, monkeypatch
):
    found = namespaces(
        "sim2real.launch.py", monkeypatch, model=model, namespace=given, ros_namespace=pushed
    )
    assert set(found.values()) == {namespace}


def test_episodes_bring_the_evaluator_and_view_brings_rviz(model, tmp_path, monkeypatch):
    (tmp_path / "rviz2").touch(mode=0o755)  # where ROS is not installed there is none
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    names = started("sim2real.launch.py", model=model, episodes="2", view="true", record="true")
    assert names[-2:] == ["equi_evaluation/evaluate", "rviz2"]


def test_the_expert_can_drive_the_simulated_cell_in_place_of_a_policy(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a stand-in contract is put there
    names = started("sim2real.launch.py", task="block_pulling", driven_by="expert")
    assert names[-2:] == ["equi_cell_sim/expert_policy_node", MANAGER]


def test_episodes_on_a_robot_are_refused_because_no_operator_could_answer(model):
    with pytest.raises(ArgumentError, match="ros2 run equi_evaluation evaluate --episodes 5"):
        started("sim2real.launch.py", model=model, sim="false", episodes="5")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cell_sim.launch.py", CELL),
        ("control.launch.py", [ROBOT_SIDE[0], MANAGER]),
        ("perception.launch.py", [ROBOT_SIDE[1], MANAGER]),
        ("policy.launch.py", [ROBOT_SIDE[2], MANAGER]),
    ],
)
def test_each_piece_can_be_launched_alone(name, expected, model):
    assert started(name, model=model) == expected
