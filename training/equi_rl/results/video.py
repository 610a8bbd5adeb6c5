# SPDX-License-Identifier: MIT
"""Episodes as videos and filmstrips.

The side view beside what the policy sees, with step, gripper and action.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from equi_core.action import decode
from equi_core.contract import ACTION_ORDER, PolicyContract
from equi_core.video import write_mp4
from equi_rl.agents.acting_policy import Policy
from equi_rl.data.demonstrations import Demo, DemoError
from equi_rl.data.episode import pack_depth
from equi_rl.envs import HiddenPropertyEnv
from equi_rl.sim.cameras import render_rgb, side_view_camera

RgbImage = NDArray[np.uint8]
"""(height, width, 3)."""

_INK = (38, 43, 51)
_QUIET = (120, 127, 138)
_PAPER = (255, 255, 255)
_YES = (28, 128, 84)
_NO = (196, 106, 44)
_WORDS_HEIGHT_PX = 104
"""What `_write` needs: a heading and four lines."""
# Depth from 0 (the fingers) to the table: dark to light.
_DEPTH_STOPS = np.array(
    [(23, 26, 48), (52, 58, 110), (64, 122, 152), (122, 190, 172), (226, 236, 212)],
    dtype=np.float64,
)


@dataclass(frozen=True)
class Frame:
    """One moment of an episode."""

    step: int
    side_view: RgbImage
    observation: NDArray[np.float32]
    """(2, S, S)."""
    action: NDArray[np.float32] | None
    """Policy vector (5,) that led here; None at the start."""
    success: bool


def replay_frames(
    env: HiddenPropertyEnv, demo: Demo, size_px: tuple[int, int] = (360, 270)
) -> list[Frame]:
    """Play a recorded episode again and render it; refuses if it does not come out the same."""
    camera = side_view_camera(size_px)
    observation, _ = env.reset(seed=demo.seed)
    frames = [Frame(0, render_rgb(env.world, camera), observation, None, False)]
    for step, requested in enumerate(demo.requested_action):
        observation, _, _, _, info = env.step(requested)
        if not np.array_equal(pack_depth(observation[0]), demo.depth[step + 1]):
            raise DemoError(
                f"the episode of seed {demo.seed} comes out differently at step {step + 1}; it was "
                "recorded by another version of the world: record it again"
            )
        frames.append(
            Frame(
                step + 1,
                render_rgb(env.world, camera),
                observation,
                demo.executed_action[step],
                bool(info["success"]),
            )
        )
    return frames


class EpisodeFilm:
    """Collects the frames of an episode while it is played, rendered from the side."""

    def __init__(self, env: HiddenPropertyEnv, size_px: tuple[int, int] = (360, 270)) -> None:
        self._world = env.world
        self._camera = side_view_camera(size_px)
        self.frames: list[Frame] = []

    def add(
        self, observation: NDArray[np.float32], action: NDArray[np.float32] | None, success: bool
    ) -> None:
        """Append the world as it is now; arguments as in `Frame`."""
        image = render_rgb(self._world, self._camera)
        self.frames.append(Frame(len(self.frames), image, observation, action, success))


def render_episode(env: HiddenPropertyEnv, policy: Policy, seed: int) -> list[Frame]:
    """Play one episode and render it from the side."""
    observation, _ = env.reset(seed=seed)
    film = EpisodeFilm(env)
    film.add(observation, None, False)
    state = policy.start(seed)
    executed = np.zeros(len(ACTION_ORDER), dtype=np.float32)
    ended = False
    while not ended:
        action, state = policy.act(observation, executed, state)
        observation, _, terminated, truncated, info = env.step(action)
        executed = info["executed_action"]
        ended = terminated or truncated
        film.add(observation, executed, bool(info["success"]))
    return film.frames


def write_filmstrip(
    frames: list[Frame], contract: PolicyContract, path: Path, count: int = 8, columns: int = 4
) -> None:
    """Write a PNG of the most telling moments, `columns` to a row."""
    chosen = [frames[i] for i in _spread(len(frames), count)]
    cells = [Image.fromarray(_cell(frame, contract, 300)) for frame in chosen]
    width, height = cells[0].size
    gap = 10
    rows = math.ceil(len(cells) / columns)
    strip = Image.new("RGB", (columns * (width + gap) - gap, rows * (height + gap) - gap), _PAPER)
    for i, cell in enumerate(cells):
        strip.paste(cell, ((i % columns) * (width + gap), (i // columns) * (height + gap)))
    # A palette keeps the file small; the images have few colours.
    strip.quantize(200, dither=Image.Dither.NONE).save(path, optimize=True)


def write_video(frames: list[Frame], contract: PolicyContract, path: Path, fps: int = 4) -> None:
    """Write an MP4 (H.264) or a GIF, by the file's ending: side view beside observation."""
    if path.suffix not in (".gif", ".mp4"):
        raise DemoError(f"'{path.suffix}' is not a video; end the name with .mp4 or .gif")
    images = [_wide(frame, contract) for frame in frames]
    images += [images[-1]] * fps
    if path.suffix == ".mp4":
        write_mp4(path, images, float(fps))
        return
    first, *others = (
        Image.fromarray(image).quantize(128, dither=Image.Dither.NONE) for image in images
    )
    first.save(path, save_all=True, append_images=others, duration=1000 // fps, loop=0)


def depth_image(observation: NDArray[np.float32], size_px: int) -> RgbImage:
    """The depth channel of an observation (2, S, S) in colour, enlarged without smoothing."""
    table_m = max(float(observation[0].max()), 1e-3)
    level = np.clip(observation[0] / table_m, 0.0, 1.0) * (len(_DEPTH_STOPS) - 1)
    low = np.minimum(level.astype(np.int64), len(_DEPTH_STOPS) - 2)
    share = (level - low)[..., None]
    colour = _DEPTH_STOPS[low] * (1 - share) + _DEPTH_STOPS[low + 1] * share
    image = Image.fromarray(colour.astype(np.uint8))
    return np.asarray(image.resize((size_px, size_px), Image.Resampling.NEAREST))


def _spread(total: int, count: int) -> list[int]:
    """First, last, and evenly between."""
    return sorted({round(i * (total - 1) / (count - 1)) for i in range(count)})


def _cell(frame: Frame, contract: PolicyContract, width: int) -> RgbImage:
    """Side view above; observation and words below."""
    view = Image.fromarray(frame.side_view).resize(
        (width, width * 3 // 4), Image.Resampling.LANCZOS
    )
    below = _WORDS_HEIGHT_PX + 12
    cell = Image.new("RGB", (width, view.height + below + 8), _PAPER)
    cell.paste(view, (0, 0))
    cell.paste(Image.fromarray(depth_image(frame.observation, below)), (0, view.height + 8))
    _write(cell, (below + 14, view.height + 8), frame, contract)
    return np.asarray(cell)


def _wide(frame: Frame, contract: PolicyContract) -> RgbImage:
    """Side view on the left, observation on the right, words below the observation."""
    height, width = frame.side_view.shape[:2]
    square = height - _WORDS_HEIGHT_PX - 6
    image = Image.new("RGB", (width + square + 10, height), _PAPER)
    image.paste(Image.fromarray(frame.side_view), (0, 0))
    image.paste(Image.fromarray(depth_image(frame.observation, square)), (width + 10, 0))
    _write(image, (width + 10, square + 6), frame, contract)
    return np.asarray(image)


def _write(
    image: Image.Image, corner: tuple[int, int], frame: Frame, contract: PolicyContract
) -> None:
    draw = ImageDraw.Draw(image)
    x, y = corner
    large, small = ImageFont.load_default(17), ImageFont.load_default(13)
    draw.text((x, y), f"step {frame.step}", fill=_INK, font=large)
    if frame.success:
        draw.text((x + 72, y + 2), "success", fill=_YES, font=ImageFont.load_default(15))
    holding = bool(frame.observation[1, 0, 0] > 0.5)
    draw.text(
        (x, y + 26),
        "holding" if holding else "not holding",
        fill=_NO if holding else _QUIET,
        font=small,
    )
    if frame.action is None:
        draw.text((x, y + 46), "start", fill=_QUIET, font=small)
        return
    delta = decode(frame.action, contract.action)
    # Rounded before printing and freed of the sign of zero.
    dx, dy, dz = (round(100 * step, 1) + 0.0 for step in delta.step_m)
    yaw_deg = round(math.degrees(delta.yaw_rad)) + 0
    grip = (
        "close" if delta.closedness > 0.75 else "open" if delta.closedness < 0.25 else "half open"
    )
    lines = (
        f"x {dx:+.1f}   y {dy:+.1f}",
        f"z {dz:+.1f} cm",
        f"yaw {yaw_deg:+d}°   {grip}",
    )
    for i, line in enumerate(lines):
        draw.text((x, y + 46 + 19 * i), line, fill=_INK, font=small)
