# SPDX-License-Identifier: MIT
"""Draws what the paper illustrates, with the code that training runs.

images/representations.png       what a quarter turn does to an image, to a vector field, to regular fields
images/augmentations.png         an episode as recorded, rotated, cropped (RAD) and shifted (DrQ)
images/asymmetric_worlds.png     CarFlag with its information region off the centre

Run it after changing augmentation or worlds: python training/docs/draw_illustrations.py
"""  # noqa: E501

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

matplotlib.use("Agg")
from matplotlib import pyplot

from equi_rl.carflag.render import draw_grid, draw_line
from equi_rl.carflag.worlds import CarFlag1D, CarFlag2D
from equi_rl.data.collate import Augmentation, PixelAugmentation, collate
from equi_rl.data.episode import Episode, unpack_depth
from equi_rl.envs import make_env
from equi_rl.experts import ExpertConfig, FirstChoice, make_expert
from equi_rl.training.presets import robot_run
from equi_rl.training.rollout import play_expert

TASK, SEED = "drawer_opening", 3
FRAMES = 6
IMAGES = Path(__file__).parent / "images"


def demonstration(agent: str) -> Episode:
    """One episode of the expert, with images as large as the agent needs them."""
    contract = robot_run(TASK, "reward", agent).contract
    env = make_env(TASK, contract=contract)
    try:
        expert = make_expert(TASK, contract, ExpertConfig(first_choice=FirstChoice.NEAREST))
        return play_expert(env, expert, SEED)[0]
    finally:
        env.close()


def augmented(episode: Episode, augmentation: Augmentation) -> np.ndarray:
    """Depth images (T + 1, 84, 84) of the episode as a learner would be given it."""
    batch = collate([episode], 84, np.random.default_rng(1), augmentation).episodes
    return batch.depth_m.numpy()


def draw_augmentations() -> Figure:
    """Rows: recorded, rotated, cropped, shifted; columns: steps of the episode."""
    recorded, larger = demonstration("equi-rsac"), demonstration("rad-crop-rsac")
    rows = {
        "as recorded": unpack_depth(recorded.depth),
        "rotated\n(all agents)": augmented(recorded, Augmentation(rotate=True)),
        "recorded\n90 x 90": unpack_depth(larger.depth),
        "cropped\n(RAD)": augmented(larger, Augmentation(False, pixels=PixelAugmentation.CROP)),
        "shifted\n(DrQ)": augmented(recorded, Augmentation(False, pixels=PixelAugmentation.SHIFT)),
    }
    figure, grid = pyplot.subplots(len(rows), FRAMES, figsize=(1.35 * FRAMES, 1.4 * len(rows)))
    for axes, (name, images) in zip(grid, rows.items(), strict=True):
        size = images.shape[-1]
        name = name.replace("90 x 90", f"{size} x {size}")
        chosen = np.linspace(0, len(images) - 1, FRAMES).astype(int)
        for axis, number in zip(axes, chosen, strict=True):
            axis.imshow(images[number], cmap="viridis_r", vmin=0.0, vmax=0.3)
            bare(axis)
            axis.set_title(f"step {number}", fontsize=6, pad=2)
        axes[0].set_ylabel(name, fontsize=7, rotation=0, ha="right", va="center")
    figure.tight_layout(pad=0.4, rect=(0.03, 0, 1, 1))
    return figure


def draw_worlds() -> Figure:
    """CarFlag as it is and with an offset; the information region is blue."""
    figure, axes = pyplot.subplots(2, 3, figsize=(9, 4.2), height_ratios=(1, 4))
    for axis, offset in zip(axes[0], (0, 5, -10), strict=True):
        axis.imshow(draw_line(CarFlag1D(40, offset), cell=-3, goal_side=1))
        axis.set_title(f"CarFlag-1D, offset {offset:+d}".replace("+0", "0"), fontsize=8)
        bare(axis)
    for axis, offset in zip(axes[1], (0, 1, -2), strict=True):
        axis.imshow(draw_grid(CarFlag2D(9, offset), (7, 1), (1, 7)))
        axis.set_title(f"CarFlag-2D, offset {offset:+d}".replace("+0", "0"), fontsize=8)
        bare(axis)
    figure.tight_layout()
    return figure


def draw_representations() -> Figure:
    """Before (top) and after (bottom) a quarter turn counter-clockwise."""
    size = 5
    image = np.zeros((size, size))
    image[1, 3], image[3, 1] = 1.0, 0.45
    turned = np.rot90(image)
    figure, axes = pyplot.subplots(2, 6, figsize=(10, 3.9))
    for axis, field in zip(axes[:, 0], (image, turned), strict=True):
        shown(axis, field)
    axes[0, 0].set_title("trivial\npixels move, values stay", fontsize=8)
    places = np.argwhere(image > 0)
    vectors = np.array([(1.0, 0.0), (0.0, 1.0)])  # x right, y up
    for axis, quarter in zip(axes[:, 1], (0, 1), strict=True):
        shown(axis, np.zeros_like(image))
        for place, (x, y) in zip(places, vectors, strict=True):
            row, column = place
            for _ in range(quarter):
                (row, column), (x, y) = (size - 1 - column, row), (-y, x)
            axis.arrow(column, row, 0.8 * x, -0.8 * y, width=0.08, color="#1b6ca8")
    axes[0, 1].set_title("standard\npixels move, vectors turn", fontsize=8)
    channels = [image, image.T * 0.6, np.flipud(image) * 0.8, np.zeros_like(image)]
    after = [np.rot90(channels[(index - 1) % 4]) for index in range(4)]
    for number in range(4):
        shown(axes[0, 2 + number], channels[number])
        shown(axes[1, 2 + number], after[number])
        axes[0, 2 + number].set_title(f"channel {number + 1}", fontsize=7)
        source = (number - 1) % 4 + 1
        axes[1, 2 + number].set_title(f"was channel {source}", fontsize=7)
    axes[0, 0].set_ylabel("before", fontsize=8)
    axes[1, 0].set_ylabel("after a quarter turn", fontsize=8)
    figure.text(0.68, 0.97, "regular: pixels move, channels take turns", ha="center", fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.96))
    return figure


def shown(axis: Axes, field: np.ndarray) -> None:
    """A small field with its cells."""
    axis.imshow(field, cmap="Greens", vmin=0.0, vmax=1.2)
    axis.set_xticks(np.arange(-0.5, len(field)), [])
    axis.set_yticks(np.arange(-0.5, len(field)), [])
    axis.tick_params(length=0)
    axis.grid(color="#cccccc", linewidth=0.5)


def bare(axis: Axes) -> None:
    """No ticks."""
    axis.set_xticks([])
    axis.set_yticks([])


if __name__ == "__main__":
    for name, draw in {
        "representations": draw_representations,
        "augmentations": draw_augmentations,
        "asymmetric_worlds": draw_worlds,
    }.items():
        draw().savefig(IMAGES / f"{name}.png", dpi=90)
