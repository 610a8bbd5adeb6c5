# SPDX-License-Identifier: MIT
"""The perception node over real ROS: what strangers and damaged messages cannot do to it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perception_cell import PATIENCE_S, started_perception

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]


@pytest.fixture
def start(ros_probe: Any, processes: Any, repository_root: Path, ros_domain_id: int) -> Any:
    return partial(started_perception, ros_probe, processes, repository_root, ros_domain_id)


def test_depth_images_make_the_same_observation_as_clouds(start: Any) -> None:
    """The clouds of this cell are made from the same depth images, so every bit must agree."""
    from equi_calibration.synthetic.depth_camera import cloud_of
    from equi_core.contract import PolicyContract
    from equi_core.observation.builder import ObservationBuilder, RobotPose

    cell, node = start("depth")
    seen = cell.observation()
    builder = ObservationBuilder(
        PolicyContract(task="block_picking").image,
        {name: spec.base_from_camera for name, (spec, _) in cell.frames.items()},
    )
    robot = RobotPose(tuple(cell.joints), cell.tcp_m, cell.yaw_rad, 1.0, False)
    clouds = {name: cloud_of(spec, frame) for name, (spec, frame) in cell.frames.items()}
    expected = builder.build(clouds, robot).image
    image = np.array(seen.image, dtype=np.float32).reshape(expected.shape)
    # The calibration file is of measured cameras: they stand where the rig says to a few mm.
    assert np.median(np.abs(image[0] - expected[0])) < 0.005
    assert node.is_running


def test_nonsense_is_dropped_and_perception_goes_on(start: Any) -> None:
    cell, node = start()
    first = cell.observation()

    not_a_number = cell.robot_message()
    not_a_number.tcp_pose.position.x = float("nan")
    far_joints = cell.robot_message()
    far_joints.joint_positions = [1e300] * 6
    far_future = cell.robot_message()
    far_future.header.stamp.sec = 2**31 - 1
    late_cloud = cell.cloud_message("cam_left")
    late_cloud.header.stamp.sec = 2**31 - 1
    for _ in range(5):
        for message in (not_a_number, far_joints, far_future):
            cell.robot.publish(message)
        cell.clouds["cam_left"].publish(late_cloud)
    cell.observation(lambda message: message.sequence > first.sequence + 2)
    assert node.is_running


def test_a_second_publisher_of_the_robots_state_is_named_and_nothing_is_observed(
    start: Any,
) -> None:
    import rclpy
    from equi_interfaces.msg import RobotState

    from equi_ros import qos

    cell, node = start()
    before = cell.observation()
    stranger = rclpy.create_node("stranger", context=cell.node.context)
    stranger.create_publisher(RobotState, "/robot_state", qos.ROBOT_STATE)
    status = cell.status("foreign_publisher: second_publisher")
    assert "/stranger" in " ".join(status.reasons)
    stranger.destroy_node()
    cell.observation(lambda message: message.sequence > before.sequence + 3)
    assert node.is_running


def test_a_serial_that_is_not_checked_is_said_aloud(start: Any) -> None:
    _, node = start(cam_right__serial="any")
    node.wait_for_text("the serial number of cam_right is NOT checked .'any'", PATIENCE_S)
    assert "cam_left is NOT checked" not in node.output


def test_the_arm_of_the_cell_is_taken_out_and_an_unknown_one_refused(start: Any) -> None:
    with pytest.raises(AssertionError, match="known are ur3, ur5"):
        start(robot_model="ur7")


def test_pushing_is_not_reset_without_a_goal_and_its_pad_is_drawn_with_one(start: Any) -> None:
    from equi_interfaces.srv import ResetEpisode

    cell, _ = start(task="block_pushing")
    reset = "/depth_fusion/reset_episode"
    answer = cell.probe.call(ResetEpisode, reset, ResetEpisode.Request(episode_id="e"), PATIENCE_S)
    assert not answer.accepted
    assert "block_pushing has a goal" in answer.message

    without = cell.observation()
    request = ResetEpisode.Request(episode_id="e", has_goal=True)
    request.goal_position.x, request.goal_position.y = cell.tcp_m[0], cell.tcp_m[1] + 0.12
    assert cell.probe.call(ResetEpisode, reset, request, PATIENCE_S).accepted
    in_episode = cell.robot_message

    def running() -> Any:
        message = in_episode()
        message.episode_id = "e"
        return message

    cell.robot_message = running  # type: ignore[method-assign]
    with_goal = cell.observation(lambda message: message.has_goal)
    pixels = [np.array(m.image, dtype=np.float32)[: 84 * 84] for m in (without, with_goal)]
    deeper = pixels[1] - pixels[0]
    # 90 mm of pad in pixels of 400 / 84 mm: 19 x 19; it is drawn 20 mm deeper than the table.
    assert 300 < np.count_nonzero(np.isclose(deeper, 0.02, atol=1e-4)) < 420
