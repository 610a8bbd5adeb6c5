# SPDX-License-Identifier: MIT
"""Perception data <-> ROS messages: conversions only, no decisions."""

from __future__ import annotations

import array
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from builtin_interfaces.msg import Time
from equi_interfaces.msg import Observation, PerceptionStatus, RobotState
from geometry_msgs.msg import Point, TransformStamped
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import Header

from equi_core.calibration import CameraCalibration
from equi_core.camera_frames import LINK_SUFFIX, base_from_camera_link, camera_of
from equi_core.cell_geometry import CellGeometry
from equi_core.observation.builder import FusedObservation, RobotPose
from equi_perception.depth_image import DepthImage, PinholeInfo
from equi_perception.freshness import Issue, StampedRobot, SyncStatus
from equi_ros.message_checks import require_plausible
from equi_ros.stamps import nanoseconds, time_message
from equi_ros.transforms import transform_message

FRAME = "base_link"
_FARTHEST_REACH_M = 3.0
"""No arm of this kind reaches farther from its base."""
_UNIT_TOLERANCE = 1e-3
_WIDEST_JOINT_RAD = 4 * math.pi
"""Twice the range of a UR's joints."""


def stamped_robot(message: RobotState) -> StampedRobot:
    """What freshness needs to know of a robot state; MalformedMessage if it cannot be one."""
    position = message.tcp_pose.position
    require_plausible("tcp_pose.position", (position.x, position.y, position.z), _FARTHEST_REACH_M)
    require_plausible("tcp_yaw_rad", (message.tcp_yaw_rad,), _WIDEST_JOINT_RAD)
    require_plausible("joint_positions", message.joint_positions, _WIDEST_JOINT_RAD)
    require_plausible("gripper_opening", (message.gripper_opening,), 2.0)
    return StampedRobot(
        stamp_ns=nanoseconds(message.header.stamp),
        moving=message.moving,
        episode_id=message.episode_id,
        executed_steps=message.executed_steps,
        state=message,
    )


def robot_pose(state: RobotState) -> RobotPose:
    """What the observation needs to know of a robot state."""
    position, turn = state.tcp_pose.position, state.tcp_pose.orientation
    quaternion = (turn.x, turn.y, turn.z, turn.w)
    is_unit = abs(math.hypot(*quaternion) - 1.0) < _UNIT_TOLERANCE
    return RobotPose(
        quaternion_xyzw=quaternion if is_unit else None,
        joints_rad=tuple(float(angle) for angle in state.joint_positions),
        tcp_position_m=(position.x, position.y, position.z),
        yaw_rad=state.tcp_yaw_rad,
        opening=state.gripper_opening,
        holding=state.holding,
    )


def observation_message(
    fused: FusedObservation,
    cloud_stamps_ns: Mapping[str, int],
    robot: StampedRobot,
    goal_m: tuple[float, float, float] | None,
    *,
    contract_sha256: str,
    sequence: int,
) -> Observation:
    """The image with everything that says what it was made from."""
    state: RobotState = robot.state
    message = Observation(
        header=Header(
            stamp=time_message(min(cloud_stamps_ns.values())), frame_id=state.header.frame_id
        ),
        contract_sha256=contract_sha256,
        episode_id=robot.episode_id,
        step_index=robot.executed_steps,
        sequence=sequence,
        camera_names=list(cloud_stamps_ns),
        cloud_stamps=[time_message(stamp_ns) for stamp_ns in cloud_stamps_ns.values()],
        robot_stamp=state.header.stamp,
        tcp_position=state.tcp_pose.position,
        tcp_yaw_rad=state.tcp_yaw_rad,
        gripper_opening=state.gripper_opening,
        holding=state.holding,
        unseen_fraction=fused.unseen_fraction,
    )
    if goal_m is not None:
        message.has_goal = True
        message.goal_position = Point(x=goal_m[0], y=goal_m[1], z=goal_m[2])
    message.channels, message.height, message.width = fused.image.shape
    # An array.array passes rclpy's checks as it is; a list would be checked number by number.
    message.image = array.array("f", fused.image.tobytes())
    return message


def pinhole_info(message: CameraInfo) -> PinholeInfo:
    """What places the pixels of a rectified image; CloudLayoutError if it cannot."""
    return PinholeInfo(
        frame_id=message.header.frame_id,
        width=int(message.width),
        height=int(message.height),
        fx=float(message.k[0]),
        fy=float(message.k[4]),
        cx=float(message.k[2]),
        cy=float(message.k[5]),
        distorted=any(message.d),
    )


def depth_image(message: Image, info: PinholeInfo) -> DepthImage:
    """A depth image with the camera that took it."""
    return DepthImage(
        stamp_ns=nanoseconds(message.header.stamp),
        frame_id=message.header.frame_id,
        height=int(message.height),
        width=int(message.width),
        encoding=message.encoding,
        is_bigendian=bool(message.is_bigendian),
        step=int(message.step),
        data=message.data,
        info=info,
    )


def status_message(
    issues: Sequence[Issue], status: SyncStatus, camera_names: Sequence[str], stamp: Time
) -> PerceptionStatus:
    """Ready, or waiting with one reason per issue."""
    return PerceptionStatus(
        header=Header(stamp=stamp),
        state=PerceptionStatus.WAITING if issues else PerceptionStatus.READY,
        reasons=[str(issue) for issue in issues],
        camera_names=list(camera_names),
        cloud_ages_s=list(status.cloud_ages_s),
    )


def inactive_message(reason: str, stamp: Time) -> PerceptionStatus:
    """Not active: no observation comes until somebody activates the node."""
    return PerceptionStatus(
        header=Header(stamp=stamp), state=PerceptionStatus.INACTIVE, reasons=[reason]
    )


def image_message(rgb: NDArray[np.uint8], header: Header) -> Image:
    """An RGB image (H, W, 3)."""
    height, width = rgb.shape[:2]
    return Image(
        header=header,
        height=height,
        width=width,
        encoding="rgb8",
        step=3 * width,
        data=array.array("B", rgb.tobytes()),
    )


def task_transform(
    geometry: CellGeometry, stamp: Time, frame_prefix: str = ""
) -> list[TransformStamped]:
    """Where the task frame stands in base_link; none where it is base_link itself."""
    if geometry.task_is_base_link:
        return []
    names = (frame_prefix + FRAME, frame_prefix + geometry.frame_id)
    return [transform_message(*names, geometry.base_link_from_task, stamp)]


def camera_transforms(
    cameras: Iterable[CameraCalibration], stamp: Time, frame_prefix: str = ""
) -> list[TransformStamped]:
    """Where the links of the calibrated cameras stand in base_link.

    The camera's driver publishes the frames from its link on. A camera that was calibrated in
    another frame than its depth optical frame is left out: only its driver knows the way to there.
    """
    return [
        transform_message(
            frame_prefix + FRAME,
            f"{frame_prefix}{camera_of(camera.optical_frame)}{LINK_SUFFIX}",
            base_from_camera_link(camera.base_from_camera),
            stamp,
        )
        for camera in cameras
        if camera_of(camera.optical_frame)
    ]
