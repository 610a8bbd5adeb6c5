# SPDX-License-Identifier: MIT
"""camera_node: one simulated depth camera of the cell, with the topics of a RealSense.

    ros2 run equi_cell_sim camera_node --ros-args -p camera:=cam_left -p scene_file:=/tmp/scene.map

Reads the shapes that the physics process writes to `scene_file`, and publishes clouds, depth and
colour images and camera info under the camera's name. With `overlay:=board` the colour images show
a ChArUco board in the gripper (drawn by equi_calibration). For fault injection, `frozen` (no more
data), `latency_s` and `stamp_offset_s` can be set while it runs.
"""

from __future__ import annotations

import array
import sys
import time
from collections import deque
from pathlib import Path

import numpy as np
from builtin_interfaces.msg import Time
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import CameraInfo, Image, PointCloud2, PointField

from equi_cell_sim.camera_model import CameraSpec, Miscalibration, NoiseSpec, Timing
from equi_cell_sim.depth_camera import DepthCamera, DepthFrame, points_of
from equi_cell_sim.image_overlay import load_overlay
from equi_cell_sim.scene_snapshot import SceneReader, SnapshotError
from equi_core.camera_frames import DEPTH_SUFFIX, LINK_FROM_OPTICAL, LINK_SUFFIX
from equi_ros import qos
from equi_ros.parameters import declare, declare_settings
from equi_ros.run_node import run_node
from equi_ros.stamps import time_message
from equi_ros.transforms import StaticFrames, transform_message

_MILLIMETRE_M = 0.001
_DELIVERY_PERIOD_S = 0.005
_DEAD_SCENE_S = 1.0
_DYNAMIC = ("frozen", "latency_s", "stamp_offset_s")


class CameraNode(Node):
    """Captures at its rate; delivers each frame after its latency."""

    def __init__(self) -> None:
        super().__init__("camera")
        self._spec = self._read_spec()
        self._noise = declare_settings(self, NoiseSpec(), "noise.")
        self._timing = declare_settings(self, Timing(), read_only=False)
        seed = int(declare(self, "seed", 0, "seed of the noise"))
        wrong = declare_settings(self, Miscalibration(), "miscalibration.")
        true_pose = wrong.true_pose(self._spec.base_from_camera, self._spec.name)
        self._camera = DepthCamera(self._spec, self._noise, true_pose, seed)
        overlay = str(declare(self, "overlay", "", "what the arm carries, such as board"))
        self._overlay = load_overlay(overlay, self._spec, true_pose) if overlay else None
        self._rng = np.random.default_rng([seed, 1, *self._spec.name.encode()])
        scene_file = declare(self, "scene_file", "", "shared file of the simulated scene")
        self._scene = SceneReader(Path(str(scene_file)))
        self._ordered = bool(declare(self, "ordered_cloud", False, "a point for every pixel"))
        self._coloured = bool(declare(self, "coloured_cloud", False, "points with colour"))
        self._frozen = bool(
            declare(self, "frozen", False, "fault: nothing more is delivered", read_only=False)
        )
        wrong_clock = "fault: the clock is wrong by this much [s]"
        self._stamp_offset_s = float(
            declare(self, "stamp_offset_s", 0.0, wrong_clock, read_only=False)
        )
        self._latency_s = self._timing.latency_s
        self._waiting: deque[tuple[float, int, DepthFrame]] = deque()
        self._last_stamp_ns = 0
        columns = 5 if self._coloured else 4
        size = self._spec.width_px * self._spec.height_px
        self._points = np.empty((size, columns), dtype=np.float32)
        self._connect()
        self.add_on_set_parameters_callback(self._on_parameters)

    def _read_spec(self) -> CameraSpec:
        name = str(declare(self, "camera", "cam_left", "name of the camera"))
        side = -1.0 if name.endswith("right") else 1.0
        default = CameraSpec(name, (0.60, side * 0.72, 0.62))
        return declare_settings(self, default, skip=("name",))

    def _connect(self) -> None:
        name = self._spec.name
        self._clouds = self.create_publisher(PointCloud2, f"{name}/depth/points", qos.CAMERA)
        self._depths = self.create_publisher(Image, f"{name}/depth/image_rect_raw", qos.CAMERA)
        self._colours = self.create_publisher(Image, f"{name}/color/image_raw", qos.CAMERA)
        self._infos = self.create_publisher(CameraInfo, f"{name}/depth/camera_info", qos.CAMERA)
        self._colour_infos = self.create_publisher(
            CameraInfo, f"{name}/color/camera_info", qos.CAMERA
        )
        self._publish_frames()
        self.create_timer(1.0 / self._timing.rate_hz, self._capture)
        self.create_timer(_DELIVERY_PERIOD_S, self._deliver)
        self.get_logger().info(
            f"ready: {name}, {self._spec.width_px} x {self._spec.height_px} at "
            f"{self._timing.rate_hz:g} Hz, {self._latency_s * 1e3:.0f} ms latency"
        )

    def _publish_frames(self) -> None:
        """From the camera's link to its optical frame, as a RealSense driver publishes them."""
        name, stamp = self._spec.name, self.get_clock().now().to_msg()
        prefix = str(self.declare_parameter("frame_prefix", "").value)
        depth_frame = f"{prefix}{name}{DEPTH_SUFFIX}"
        self._frame_id = prefix + self._spec.optical_frame
        self._frames = StaticFrames(self)
        self._frames.publish(
            [
                transform_message(f"{prefix}{name}{LINK_SUFFIX}", depth_frame, np.eye(4), stamp),
                transform_message(depth_frame, self._frame_id, LINK_FROM_OPTICAL, stamp),
            ]
        )

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        for parameter in parameters:
            if parameter.name not in _DYNAMIC:
                return SetParametersResult(
                    successful=False,
                    reason=f"'{parameter.name}' is fixed; only {', '.join(_DYNAMIC)} may change",
                )
        for parameter in parameters:
            if parameter.name == "frozen":
                self._frozen = bool(parameter.value)
            elif parameter.name == "latency_s":
                self._latency_s = float(parameter.value)
            else:
                self._stamp_offset_s = float(parameter.value)
        return SetParametersResult(successful=True)

    def _capture(self) -> None:
        if self._frozen or not self._subscribed():
            return
        try:
            table, stamp_ns = self._scene.read()
        except SnapshotError as error:
            self.get_logger().warning(str(error), throttle_duration_sec=5.0)
            return
        if stamp_ns == self._last_stamp_ns or time.time_ns() - stamp_ns > _DEAD_SCENE_S * 1e9:
            return  # the physics is paused: a camera would see nothing new
        self._last_stamp_ns = stamp_ns
        with_colour = self._coloured or self._colours.get_subscription_count() > 0
        frame = self._camera.capture(table, with_colour)
        if with_colour and self._overlay is not None:
            self._overlay.draw(frame.colour, table)
        delay_s = max(0.0, self._latency_s + self._rng.normal(0.0, self._timing.jitter_s))
        self._waiting.append((stamp_ns / 1e9 + delay_s, stamp_ns, frame))

    def _subscribed(self) -> bool:
        """Whether anybody subscribes; as in the real driver, nothing is computed otherwise."""
        return any(
            publisher.get_subscription_count() > 0
            for publisher in (self._clouds, self._depths, self._colours)
        )

    def _deliver(self) -> None:
        now_s = time.time()
        while self._waiting and self._waiting[0][0] <= now_s:
            _, stamp_ns, frame = self._waiting.popleft()
            if not self._frozen:
                self._publish(stamp_ns + round(self._stamp_offset_s * 1e9), frame)

    def _publish(self, stamp_ns: int, frame: DepthFrame) -> None:
        stamp = time_message(stamp_ns)
        if self._clouds.get_subscription_count():
            self._clouds.publish(self._cloud(stamp, frame))
        info = self._info(stamp)
        if self._depths.get_subscription_count():
            self._depths.publish(self._depth_image(stamp, frame))
        if self._colours.get_subscription_count():
            self._colours.publish(self._image(stamp, frame.colour, "rgb8", 3))
        self._infos.publish(info)
        self._colour_infos.publish(info)

    def _cloud(self, stamp: Time, frame: DepthFrame) -> PointCloud2:
        spec = self._spec
        columns = self._points.shape[1]
        count = points_of(
            frame.depth_units,
            frame.unit_m,
            spec.focal_px,
            *spec.centre_px,
            self._ordered,
            columns,
            frame.colour,
            self._points,
        )
        message = PointCloud2()
        message.header.stamp, message.header.frame_id = stamp, self._frame_id
        message.height = spec.height_px if self._ordered else 1
        message.width = spec.width_px if self._ordered else count
        message.fields = [
            PointField(name=name, offset=4 * index, datatype=PointField.FLOAT32, count=1)
            for index, name in enumerate("xyz")
        ]
        if self._coloured:
            message.fields.append(
                PointField(name="rgb", offset=16, datatype=PointField.FLOAT32, count=1)
            )
        message.point_step = 4 * columns
        message.row_step = message.point_step * message.width
        message.is_dense = not self._ordered
        message.data = array.array("B", self._points[:count].tobytes())
        return message

    def _depth_image(self, stamp: Time, frame: DepthFrame) -> Image:
        """Depth as REP 118 has it: 16 bits are millimetres; a finer unit goes as metres."""
        if frame.unit_m == _MILLIMETRE_M:
            return self._image(stamp, frame.depth_units, "16UC1", 2)
        return self._image(stamp, (frame.depth_units * frame.unit_m).astype("f4"), "32FC1", 4)

    def _image(self, stamp: Time, pixels: np.ndarray, encoding: str, step: int) -> Image:
        height, width = pixels.shape[:2]
        message = Image(height=height, width=width, encoding=encoding, step=step * width)
        message.header.stamp, message.header.frame_id = stamp, self._frame_id
        message.data = array.array("B", np.ascontiguousarray(pixels).tobytes())
        return message

    def _info(self, stamp: Time) -> CameraInfo:
        spec = self._spec
        cx, cy = spec.centre_px
        f = spec.focal_px
        message = CameraInfo(height=spec.height_px, width=spec.width_px)
        message.header.stamp, message.header.frame_id = stamp, self._frame_id
        message.distortion_model, message.d = "plumb_bob", [0.0] * 5
        message.k = [f, 0.0, cx, 0.0, f, cy, 0.0, 0.0, 1.0]
        message.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
        message.p = [f, 0.0, cx, 0.0, 0.0, f, cy, 0.0, 0.0, 0.0, 1.0, 0.0]
        return message


def main(args: list[str] | None = None) -> int:
    """Entry point of the node."""
    return run_node("camera", CameraNode, args, refusals=(ValueError,))


if __name__ == "__main__":
    sys.exit(main())
