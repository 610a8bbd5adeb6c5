# SPDX-License-Identifier: MIT
"""What every launch file starts, in which order and namespace; visited, so that nothing runs."""

from __future__ import annotations

import os
import tempfile
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
