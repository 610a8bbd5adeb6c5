# SPDX-License-Identifier: MIT
"""Draws the cell as RViz shows it, without a screen, from a bag alone.

ros2 run equi_evaluation evaluate --episodes 1 --ground-truth --record --record-sensors depth
python ros2_ws/docs/draw_cell_view.py runs/evaluation/.../block_picking-7-ab12 --png cell_view.png

Everything comes from recorded topics: the arm from robot_description, its posture and the cameras'
places from tf and tf_static, the points from depth images with their camera_info, the arrow from
delta_command and robot_state. PyBullet renders the arm; points are drawn where they are in front.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pybullet
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from equi_core.robot_description.joint_tree import JointTree
from equi_evaluation.recording import read_recording

FloatArray = NDArray[np.float64]
WIDTH, HEIGHT = 960, 640
EYE_M, TARGET_M = (1.25, -0.95, 0.75), (0.35, 0.0, 0.18)
NEAR_M, FAR_M, FOV_DEG = 0.05, 6.0, 42.0
COLOURS = {"cam_left": (230, 120, 60), "cam_right": (70, 130, 200)}
TABLE_M = 0.012
"""Points nearer to the table's plane than this are the table, drawn pale; lower ones are floor."""
ARROW = (40, 160, 70)
PAPER = (246, 246, 244)


class Scene:
    """The newest of everything that a bag holds before its n-th command."""

    def __init__(self, bag: Path, command_number: int) -> None:
        self.newest: dict[str, Any] = {}
        self.images: dict[str, Any] = {}
        self.infos: dict[str, Any] = {}
        edges: dict[str, list[tuple[int, str, FloatArray]]] = {}
        count = 0
        for item in read_recording(bag):
            message = item.message
            if item.topic in ("tf", "tf_static"):
                for transform in message.transforms:
                    edges.setdefault(transform.child_frame_id, []).append(_edge(transform))
            elif count >= command_number:
                continue
            elif item.topic.endswith("depth/image_rect_raw"):
                self.images[message.header.frame_id] = message
            elif item.topic.endswith("depth/camera_info"):
                self.infos[message.header.frame_id] = message
            else:
                self.newest[item.topic] = message
                count += item.topic == "delta_command"
        # As tf2 looks them up: those of the time at which the pictures were taken.
        taken_ns = min(_nanoseconds(image.header.stamp) for image in self.images.values())
        self.transforms = {
            child: min(found, key=lambda edge: abs(edge[0] - taken_ns))[1:]
            for child, found in edges.items()
        }

    def root_from(self, frame: str) -> FloatArray:
        """Pose (4, 4) of a frame in base_link, by the recorded transforms."""
        pose = np.eye(4)
        while frame != "base_link":
            frame, parent_from_child = self.transforms[frame]
            pose = parent_from_child @ pose
        return pose

    def points(self, frame: str) -> FloatArray:
        """Points (N, 3) of a depth image in base_link [m]."""
        image, info = self.images[frame], self.infos[frame]
        depth = np.frombuffer(bytes(image.data), np.uint16).reshape(image.height, image.width)
        rows, columns = np.nonzero(depth)
        z = depth[rows, columns] * 1e-3
        x = (columns - info.k[2]) / info.k[0] * z
        y = (rows - info.k[5]) / info.k[4] * z
        pose = self.root_from(frame)
        return np.stack([x, y, z], axis=1) @ pose[:3, :3].T + pose[:3, 3]


def _nanoseconds(stamp: Any) -> int:
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def _edge(transform: Any) -> tuple[int, str, FloatArray]:
    t, r = transform.transform.translation, transform.transform.rotation
    pose = np.eye(4)
    pose[:3, 3] = (t.x, t.y, t.z)
    pose[:3, :3] = Rotation.from_quat([r.x, r.y, r.z, r.w]).as_matrix()
    return _nanoseconds(transform.header.stamp), transform.header.frame_id, pose


def render_arm(scene: Scene) -> tuple[NDArray[np.uint8], FloatArray, FloatArray]:
    """Picture (H, W, 3) of the arm, its depth buffer (H, W), and the projection (4, 4)."""
    text = scene.newest["robot_description"].data
    client = pybullet.connect(pybullet.DIRECT)
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".urdf") as file:
            file.write(text)
            file.flush()
            robot = pybullet.loadURDF(file.name, useFixedBase=True, physicsClientId=client)
        joints = {joint.child: joint for joint in JointTree(text).moving}
        for index in range(pybullet.getNumJoints(robot, client)):
            child = pybullet.getJointInfo(robot, index, client)[12].decode()
            if child in joints and child in scene.transforms:
                position = _position(joints[child], scene.transforms[child][1])
                pybullet.resetJointState(robot, index, position, physicsClientId=client)
        view = pybullet.computeViewMatrix(EYE_M, TARGET_M, (0, 0, 1))
        projection = pybullet.computeProjectionMatrixFOV(FOV_DEG, WIDTH / HEIGHT, NEAR_M, FAR_M)
        _, _, rgba, depth, segments = pybullet.getCameraImage(
            WIDTH, HEIGHT, view, projection, lightDirection=(1, -1, 2),
            renderer=pybullet.ER_TINY_RENDERER, physicsClientId=client,
        )  # fmt: skip
    finally:
        pybullet.disconnect(client)
    picture = np.array(rgba, np.uint8).reshape(HEIGHT, WIDTH, 4)[..., :3].copy()
    picture[np.array(segments).reshape(HEIGHT, WIDTH) < 0] = PAPER
    matrices = [np.array(item).reshape(4, 4, order="F") for item in (projection, view)]
    return picture, np.array(depth).reshape(HEIGHT, WIDTH), matrices[0] @ matrices[1]


def _position(joint: Any, parent_from_child: FloatArray) -> float:
    moved = np.linalg.inv(joint.origin) @ parent_from_child
    if joint.kind == "prismatic":
        return float(joint.axis @ moved[:3, 3])
    return float(joint.axis @ Rotation.from_matrix(moved[:3, :3]).as_rotvec())


def project(points_m: FloatArray, clip_from_base: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pixels (N, 2) and depth-buffer values (N,) of points."""
    clip = np.column_stack([points_m, np.ones(len(points_m))]) @ clip_from_base.T
    normal = clip[:, :3] / clip[:, 3:]
    pixels = (normal[:, :2] * (0.5, -0.5) + 0.5) * (WIDTH, HEIGHT)
    return pixels, normal[:, 2] / 2 + 0.5


def draw_points(
    picture: NDArray[np.uint8], depth: FloatArray, points: FloatArray, clip: FloatArray, colour: Any
) -> None:
    """Draw points that lie in front of what is there already."""
    pixels, values = project(points, clip)
    inside = (pixels >= 0).all(axis=1) & (pixels < (WIDTH, HEIGHT)).all(axis=1) & (values < 1)
    columns, rows = pixels[inside].astype(int).T
    order = np.argsort(-values[inside])
    for row, column, value in zip(rows[order], columns[order], values[inside][order], strict=True):
        if value <= depth[row, column]:
            depth[row, column] = value
            picture[row, column] = colour


def main() -> None:
    """Read the bag and write the picture."""
    parser = argparse.ArgumentParser(description="Draw the cell of a bag, as RViz would show it.")
    parser.add_argument("bag", type=Path)
    parser.add_argument("--command", type=int, default=3, help="before which command")
    parser.add_argument("--png", type=Path, default=Path(__file__).parent / "cell_view.png")
    options = parser.parse_args()
    scene = Scene(options.bag, options.command)
    picture, depth, clip = render_arm(scene)
    for frame in sorted(scene.images):
        colour = COLOURS.get(frame.removesuffix("_depth_optical_frame"), (120, 120, 120))
        points = scene.points(frame)
        pale = tuple(round(0.35 * part + 0.65 * 255) for part in colour)
        table = np.abs(points[:, 2]) < TABLE_M
        draw_points(picture, depth, points[table], clip, pale)
        draw_points(picture, depth, points[points[:, 2] >= TABLE_M], clip, colour)
    command, robot = scene.newest.get("delta_command"), scene.newest.get("robot_state")
    if command is not None and robot is not None:
        start = np.array([getattr(robot.tcp_pose.position, axis) for axis in "xyz"])
        step = np.array([getattr(command.translation, axis) for axis in "xyz"])
        ends, _ = project(np.stack([start, start + step]), clip)
        first, last = (tuple(int(value) for value in end) for end in ends)
        length = max(math.dist(first, last), 1.0)
        cv2.arrowedLine(picture, first, last, ARROW, 3, cv2.LINE_AA, tipLength=min(12 / length, 1))
    legend = {
        "points of cam_left": COLOURS["cam_left"],
        "points of cam_right": COLOURS["cam_right"],
    }
    for row, (text, colour) in enumerate({**legend, "next step of the policy": ARROW}.items()):
        place = (16, 28 + 24 * row)
        cv2.putText(picture, text, place, cv2.FONT_HERSHEY_SIMPLEX, 0.6, colour, 2, cv2.LINE_AA)
    cv2.imwrite(str(options.png), picture[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 9])


if __name__ == "__main__":
    main()
