# SPDX-License-Identifier: MIT
"""The layouts for RViz and Foxglove: they show topics that exist, with displays that fit them.

Neither program is here; the whole cell with all of its topics is in test_launch_ends_as_it_should.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("equi_interfaces", reason="needs a built workspace")

from diagnostic_msgs.msg import DiagnosticArray
from equi_interfaces.msg import DeltaCommand, ExecutedCommand, PerceptionStatus, SafetyStatus
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import Image, PointCloud2
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

CONFIG = Path(__file__).resolve().parents[2] / "launch" / "config"
TYPES: dict[str, Any] = {
    "cam_left/depth/points": PointCloud2,
    "cam_right/depth/points": PointCloud2,
    "cam_left/color/image_raw": Image,
    "observation_preview": Image,
    "robot_description": String,
    "motion_marker": MarkerArray,
    "tcp_pose": PoseStamped,
    "diagnostics": DiagnosticArray,
    "delta_command": DeltaCommand,
    "executed_command": ExecutedCommand,
    "safety_status": SafetyStatus,
    "perception_status": PerceptionStatus,
}
DISPLAYS = {
    "RobotModel": String,
    "MarkerArray": MarkerArray,
    "PointCloud2": PointCloud2,
    "Image": Image,
    "Pose": PoseStamped,
}


def test_rviz_shows_arm_clouds_observation_and_next_step_relative_to_its_namespace() -> None:
    manager = yaml.safe_load((CONFIG / "cell.rviz").read_text())["Visualization Manager"]
    assert manager["Global Options"]["Fixed Frame"] == "base_link"
    shown = set()
    for display in manager["Displays"]:
        topic = display.get("Topic") or display.get("Description Topic")
        if topic is not None:
            kind = display["Class"].removeprefix("rviz_default_plugins/")
            assert TYPES[topic["Value"]] is DISPLAYS[kind]
            shown.add(topic["Value"])
    assert shown >= {
        "robot_description",
        "cam_left/depth/points",
        "cam_right/depth/points",
        "observation_preview",
        "motion_marker",
    }


def test_foxglove_shows_topics_and_fields_that_exist() -> None:
    layout = json.loads((CONFIG / "foxglove_layout.json").read_text())
    panels = layout["configById"]
    topics = [*panels["3D!cell"]["topics"], panels["DiagnosticSummary!all"]["topicToRender"]]
    topics += [
        panel["imageMode"]["imageTopic"] for panel in panels.values() if "imageMode" in panel
    ]
    topics += [panel["topicPath"] for panel in panels.values() if "topicPath" in panel]
    assert {topic.removeprefix("/") for topic in topics} <= set(TYPES)
    for path in panels["Plot!command"]["paths"]:
        topic, *fields = path["value"].removeprefix("/").split(".")
        message = TYPES[topic]()
        for field in fields:
            message = getattr(message, field)
        assert isinstance(message, float)
