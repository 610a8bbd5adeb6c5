# SPDX-License-Identifier: MIT
"""Images of CarFlag worlds, and whole episodes as GIF or MP4 files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from equi_core.video import write_mp4
from equi_rl.carflag.worlds import CarFlag1D, CarFlag2D

CELL_PX = 24
LINE_CELL_PX = 12
LINE_HEIGHT_PX = 48
FRAME_MS = 120

GROUND = (244, 244, 240)
RULE = (222, 222, 216)
INFO = (150, 185, 232)
GOAL = (62, 158, 92)
WRONG = (205, 78, 66)
AGENT = (38, 38, 44)


def draw_line(world: CarFlag1D, cell: int, goal_side: int) -> np.ndarray:
    """The line with both flags, the information cell and the car: (height, width, 3) uint8."""
    columns = 2 * world.half + 3  # one cell of wall behind each flag
    image = np.full((LINE_HEIGHT_PX, columns * LINE_CELL_PX, 3), GROUND, dtype=np.uint8)
    image[:, ::LINE_CELL_PX] = RULE

    def paint(at: int, colour: tuple[int, int, int], top: int, bottom: int) -> None:
        left = (at + world.half + 1) * LINE_CELL_PX
        image[top:bottom, left + 1 : left + LINE_CELL_PX] = colour

    paint(world.offset, INFO, 0, LINE_HEIGHT_PX)
    for side in (-1, 1):
        paint(side * world.half, GOAL if side == goal_side else WRONG, 0, LINE_HEIGHT_PX)
    paint(cell, AGENT, LINE_HEIGHT_PX // 3, 2 * LINE_HEIGHT_PX // 3)
    return image


def draw_grid(world: CarFlag2D, cell: tuple[int, int], goal: tuple[int, int]) -> np.ndarray:
    """The grid with information region, goal and agent: (size, size, 3) in pixels, uint8."""
    edge = world.size * CELL_PX
    image = np.full((edge, edge, 3), GROUND, dtype=np.uint8)
    region = np.kron(world.info_mask, np.ones((CELL_PX, CELL_PX), dtype=bool))
    image[region] = INFO
    image[::CELL_PX] = RULE
    image[:, ::CELL_PX] = RULE
    for (row, column), colour, inset in ((goal, GOAL, 2), (cell, AGENT, 6)):
        top, left = row * CELL_PX, column * CELL_PX
        image[
            top + inset : top + CELL_PX - inset + 1, left + inset : left + CELL_PX - inset + 1
        ] = colour
    return image


def save_video(frames: Sequence[np.ndarray], path: Path, frame_ms: int = FRAME_MS) -> None:
    """Write frames (height, width, 3) uint8 with a pause on the last one, by the file's ending.

    `.mp4` is H.264; anything else is an endless GIF.
    """
    from PIL import Image

    if not frames:
        raise ValueError("an episode without frames cannot be drawn; render at least once")
    if path.suffix == ".mp4":
        write_mp4(path, [*frames, *[frames[-1]] * 7], 1000 / frame_ms)
        return
    images = [Image.fromarray(frame).quantize(colors=16) for frame in frames]
    durations = [frame_ms] * (len(images) - 1) + [8 * frame_ms]
    images[0].save(path, save_all=True, append_images=images[1:], duration=durations, loop=0)
