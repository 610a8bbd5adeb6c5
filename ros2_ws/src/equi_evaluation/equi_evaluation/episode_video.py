# SPDX-License-Identifier: MIT
"""Video and filmstrip of a recorded episode: side view, observation and action."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_core.contract import ImageSpec
from equi_core.video import write_mp4
from equi_evaluation.recording import read_recording

BgrImage = NDArray[np.uint8]
"""(height, width, 3), in the channel order of OpenCV."""

SIDE_VIEW_TOPIC = "side_view/compressed"
_SIDE = (640, 480)
_PANEL = 320
_VIDEO_HZ = 8.0
_FONT = cv2.FONT_HERSHEY_SIMPLEX
_INK = (40, 40, 40)
_PAPER = (250, 250, 248)
_BLUE, _GREEN, _RED = (170, 110, 40), (90, 150, 60), (70, 70, 190)  # BGR


@dataclass(frozen=True, eq=False)
class EpisodeFrames:
    """What an episode's images are made of, in the order of time."""

    side_views: list[tuple[int, BgrImage]]
    """Time [ns] and image."""
    observations: list[tuple[int, NDArray[np.float32], int]]
    """Time [ns], image (2, S, S), step index: only those that were acted on."""
    commands: list[tuple[int, Any]]
    executed: list[tuple[int, Any]]
    beliefs: dict[int, list[tuple[float, float, float]]] = field(default_factory=dict)
    """By step index: place (x, y) of each object relative to the gripper [m], and how likely the
    policy takes it for the movable one."""


def load_frames(recording: Path) -> EpisodeFrames:
    """Read what is needed from a recording."""
    side, seen, commands, executed = [], {}, [], []
    gripper_at: dict[tuple[int, int], tuple[int, float, float]] = {}
    believed: list[Any] = []
    for item in read_recording(recording):
        message = item.message
        if item.topic == SIDE_VIEW_TOPIC:
            drawn = cv2.imdecode(np.frombuffer(bytes(message.data), np.uint8), cv2.IMREAD_COLOR)
            if drawn is not None:
                side.append((item.log_time_ns, np.asarray(drawn, dtype=np.uint8)))
        elif item.topic == "observation":
            image = np.array(message.image, dtype=np.float32).reshape(
                message.channels, message.height, message.width
            )
            seen[message.sequence] = (item.log_time_ns, image, message.step_index)
            tcp = getattr(message, "tcp_position", None)
            if tcp is not None:
                gripper_at[_stamp(message)] = (message.step_index, tcp.x, tcp.y)
        elif item.topic == "delta_command":
            commands.append((item.log_time_ns, message))
        elif item.topic == "executed_command":
            executed.append((item.log_time_ns, message))
        elif item.topic == "belief_marker":
            believed.append(message)
    used = [
        seen[command.observation_sequence]
        for _, command in commands
        if command.observation_sequence in seen
    ]
    return EpisodeFrames(side, used, commands, executed, _beliefs(believed, gripper_at))


def _stamp(message: Any) -> tuple[int, int]:
    return int(message.header.stamp.sec), int(message.header.stamp.nanosec)


def _beliefs(
    messages: list[Any], gripper_at: dict[tuple[int, int], tuple[int, float, float]]
) -> dict[int, list[tuple[float, float, float]]]:
    """Recorded markers, each relative to the gripper of the observation that it belongs to."""
    found: dict[int, list[tuple[float, float, float]]] = {}
    for message in messages:
        for marker in message.markers:
            known = gripper_at.get(_stamp(marker))
            if known is not None and marker.text:
                step, x, y = known
                place = (marker.pose.position.x - x, marker.pose.position.y - y)
                found.setdefault(step, []).append((*place, float(marker.text)))
    return found


def draw_beliefs(
    drawn: BgrImage,
    beliefs: list[tuple[float, float, float]],
    view_m: float = ImageSpec().view_m,
) -> BgrImage:
    """Rings around the objects of an observation: how likely each is taken for the movable one."""
    size = drawn.shape[0]
    for x_m, y_m, share in beliefs:
        # Rows grow with x, columns with y; the gripper is in the middle.
        at = (int(size * (0.5 + y_m / view_m)), int(size * (0.5 + x_m / view_m)))
        colour = (60, int(60 + 160 * share), int(60 + 160 * (1.0 - share)))
        cv2.circle(drawn, at, size // 14, colour, 2, cv2.LINE_AA)
        text = f"{100 * share:.0f} %"
        # Inside the picture, also for an object at its edge.
        column = int(np.clip(at[0] + size // 14, 2, size - 52))
        corner = (column, int(np.clip(at[1] - size // 18, 12, size - 6)))
        cv2.putText(drawn, text, corner, _FONT, 0.42, (0, 0, 0), 3, cv2.LINE_AA)
        cv2.putText(drawn, text, corner, _FONT, 0.42, colour, 1, cv2.LINE_AA)
    return drawn


def depth_image(image: NDArray[np.float32], size: int = _PANEL) -> BgrImage:
    """The depth channel as an image: near is bright; a green frame while holding."""
    depth = image[0]
    span = max(float(depth.max() - depth.min()), 1e-6)
    grey = (255 * (1 - (depth - depth.min()) / span)).astype(np.uint8)
    drawn = cv2.applyColorMap(
        cv2.resize(grey, (size, size), interpolation=cv2.INTER_NEAREST), cv2.COLORMAP_BONE
    )
    if image[1].max() > 0.5:
        cv2.rectangle(drawn, (0, 0), (size - 1, size - 1), _GREEN, 8)
    return np.asarray(drawn, dtype=np.uint8)


def action_bars(command: Any, executed: Any | None, width: int, height: int) -> BgrImage:
    """Bars of the requested action (blue) and, where it differs, of the executed one (red)."""
    drawn = np.full((height, width, 3), _PAPER, dtype=np.uint8)
    rows = [
        ("grip", command.gripper_closedness * 2 - 1, "open", "closed"),
        ("x", command.translation.x / 0.05, "-5 cm", "+5 cm"),
        ("y", command.translation.y / 0.05, "-5 cm", "+5 cm"),
        ("z", command.translation.z / 0.05, "-5 cm", "+5 cm"),
        ("yaw", command.yaw_rad / (np.pi / 8), "-22 deg", "+22 deg"),
    ]
    done = None
    if executed is not None:
        done = [
            executed.gripper_closedness * 2 - 1,
            executed.translation.x / 0.05,
            executed.translation.y / 0.05,
            executed.translation.z / 0.05,
            executed.yaw_rad / (np.pi / 8),
        ]
    middle, reach = width // 2 + 20, width // 2 - 70
    for index, (name, value, low, high) in enumerate(rows):
        y = int((index + 0.6) * height / len(rows))
        cv2.putText(drawn, name, (8, y + 4), _FONT, 0.45, _INK, 1, cv2.LINE_AA)
        cv2.line(drawn, (middle - reach, y), (middle + reach, y), (215, 215, 210), 1)
        cv2.line(drawn, (middle, y - 9), (middle, y + 9), (180, 180, 180), 1)
        end = middle + int(np.clip(value, -1, 1) * reach)
        cv2.rectangle(drawn, (middle, y - 6), (end, y + 6), _BLUE, -1)
        if done is not None and abs(done[index] - value) > 0.02:
            cut = middle + int(np.clip(done[index], -1, 1) * reach)
            cv2.line(drawn, (cut, y - 9), (cut, y + 9), _RED, 3)
        cv2.putText(drawn, low, (middle - reach, y + 22), _FONT, 0.3, (150, 150, 150), 1)
        cv2.putText(drawn, high, (middle + reach - 34, y + 22), _FONT, 0.3, (150, 150, 150), 1)
    return drawn


def video_frames(frames: EpisodeFrames, title: str) -> list[BgrImage]:
    """One composed image per side view; without side views, one per step."""
    timed = frames.side_views or [
        (time_ns, depth_image(image, 480)) for time_ns, image, _ in frames.observations
    ]
    composed = []
    for time_ns, side in timed:
        step = sum(1 for sent_ns, _ in frames.commands if sent_ns <= time_ns) - 1
        canvas = np.full((_SIDE[1] + 40, _SIDE[0] + _PANEL, 3), _PAPER, dtype=np.uint8)
        canvas[40:, : _SIDE[0]] = cv2.resize(side, _SIDE)
        if 0 <= step < len(frames.observations):
            _, image, index = frames.observations[step]
            seen = draw_beliefs(depth_image(image), frames.beliefs.get(index, []))
            canvas[40 : 40 + _PANEL, _SIDE[0] :] = seen
            command = frames.commands[step][1]
            done = next(
                (
                    item
                    for _, item in frames.executed
                    if item.requested.step_index == command.step_index
                ),
                None,
            )
            canvas[40 + _PANEL :, _SIDE[0] :] = action_bars(
                command, done, _PANEL, _SIDE[1] - _PANEL
            )
        label = f"{title}   step {max(step, 0) + 1 if step >= 0 else 0}"
        cv2.putText(canvas, label, (12, 26), _FONT, 0.55, _INK, 1, cv2.LINE_AA)
        composed.append(canvas)
    return composed


def write_video(frames: EpisodeFrames, title: str, path: Path) -> Path | None:
    """Write an MP4 (H.264) of an episode; None if nothing was recorded that could be shown."""
    composed = video_frames(frames, title)
    if not composed:
        return None
    return write_mp4(path, (frame[..., ::-1] for frame in composed), _VIDEO_HZ)


def filmstrip(frames: EpisodeFrames, most: int = 8) -> BgrImage | None:
    """Side views over observations at a few steps, left to right; None without observations."""
    count = len(frames.observations)
    if count == 0:
        return None
    chosen = sorted({round(index) for index in np.linspace(0, count - 1, min(most, count))})
    columns = []
    for step in chosen:
        time_ns, image, index = frames.observations[step]
        seen = draw_beliefs(depth_image(image, 200), frames.beliefs.get(index, []))
        parts = [cv2.copyMakeBorder(seen, 2, 2, 2, 2, 0, value=_PAPER)]
        if frames.side_views:
            nearest = min(frames.side_views, key=lambda item: abs(item[0] - time_ns))[1]
            crop = nearest[90:400, 150:560] if nearest.shape[:2] == (480, 640) else nearest
            view = cv2.resize(crop, (200, 151))
            parts.insert(0, cv2.copyMakeBorder(view, 2, 2, 2, 2, 0, value=_PAPER))
        strip = np.vstack(parts)
        cv2.putText(strip, f"step {index}", (8, 18), _FONT, 0.45, (255, 255, 255), 2, cv2.LINE_AA)
        cv2.putText(strip, f"step {index}", (8, 18), _FONT, 0.45, _INK, 1, cv2.LINE_AA)
        columns.append(strip)
    return np.asarray(np.hstack(columns), dtype=np.uint8)
