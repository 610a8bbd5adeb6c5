# SPDX-License-Identifier: MIT
"""Draws images/network.png: one equivariant network from image to action and value.

Run it after changing the sizes: python training/docs/draw_network.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from equi_rl.nets.config import reference_config

WIDTH, HEIGHT = 980, 430
COLOURS = {"input": "#e8eef7", "regular": "#dff0df", "output": "#fbeadb", "memory": "#efe4f5"}


def box(axes: Axes, x: int, y: int, width: int, height: int, kind: str, *lines: str) -> None:
    """A rounded box with centred lines of text; the first is bold."""
    shape = FancyBboxPatch(
        (x + 6, y + 6),
        width - 12,
        height - 12,
        boxstyle="round,pad=6",
        facecolor=COLOURS[kind],
        edgecolor="#555555",
    )
    axes.add_patch(shape)
    top = y + height / 2 - 8.5 * (len(lines) - 1)
    for index, line in enumerate(lines):
        weight = "bold" if index == 0 else "normal"
        note(axes, x + width / 2, top + 17 * index, line, weight=weight, ha="center")


def note(axes: Axes, x: float, y: float, text: str, **style: str) -> None:
    """A line of text."""
    axes.text(x, y, text, fontsize=9, va="center", color="#222222", **style)  # type: ignore[arg-type]


def arrow(axes: Axes, *points: tuple[int, int]) -> None:
    """A line through the points with a head at its end."""
    xs, ys = zip(*points[:-1], strict=True)
    axes.plot(xs, ys, color="#333333", linewidth=1)
    style = {"arrowstyle": "-|>", "color": "#333333", "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", xy=points[-1], xytext=points[-2], arrowprops=style)


def draw() -> Figure:
    """The whole drawing, with the sizes of the C4 reference network."""
    config = reference_config("C4")
    order = config.symmetry.order
    fields = [width // order for width in config.encoder_channels]
    sizes, size = [config.observation_size], config.observation_size
    for kernel, stride in zip(config.encoder_kernels, config.encoder_strides, strict=True):
        size = (size - kernel) // stride + 1
        sizes.append(size)
    recurrent = config.recurrent_channels // order
    head = " - ".join(str(width // order) for width in config.head_channels)
    figure = plt.figure(figsize=(WIDTH / 100, HEIGHT / 100))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.axis("off")
    layers = " - ".join(map(str, fields)) + " fields"
    pixels = " - ".join(map(str, sizes)) + " px"
    embedded = f"{config.action_channels // order} fields"
    judged = f"{config.critic_action_channels // order} fields"
    for place in (
        (20, 40, 170, 80, "input", "image o", "depth + holding", "2 trivial, 84 x 84"),
        (20, 180, 170, 80, "input", "previous action a", "w, z, r trivial", "x, y standard"),
        (240, 40, 240, 80, "regular", "6 convolutions, ReLU", layers, pixels),
        (240, 180, 240, 80, "regular", "embedding, ReLU", embedded),
        (540, 100, 170, 90, "memory", "LSTM", f"{recurrent} fields", "starts at zero"),
        (770, 30, 200, 80, "regular", "actor head", f"{head} fields", "from [LSTM, image]"),
        (770, 140, 95, 90, "output", "mean", "w z r trivial", "x y standard"),
        (875, 140, 95, 90, "output", "log-std", "x, y swap", "with the axes"),
        (540, 310, 170, 70, "regular", "action to evaluate", judged),
        (
            770,
            290,
            200,
            90,
            "output",
            "two critic heads",
            f"{head} fields, value trivial",
            "[LSTM, image, action]",
        ),
    ):
        x, y, width, height, kind, *lines = place
        box(axes, x, y, width, height, kind, *lines)  # type: ignore[arg-type]
    for path in (
        ((190, 80), (240, 80)),
        ((190, 220), (240, 220)),
        ((480, 80), (510, 80), (510, 130), (540, 130)),
        ((480, 220), (510, 220), (510, 160), (540, 160)),
        ((510, 80), (510, 50), (770, 50)),
        ((710, 145), (740, 145), (740, 90), (770, 90)),
        ((740, 145), (740, 315), (770, 315)),
        ((710, 345), (770, 345)),
        ((817, 110), (817, 140)),
        ((922, 110), (922, 140)),
        ((660, 190), (660, 230), (590, 230), (590, 190)),
    ):
        arrow(axes, *path)
    note(axes, 625, 245, "h, c to the next step", ha="center")
    for index, line in enumerate(
        (
            "Rotate images and previous actions by g:",
            "fields permute, the mean rotates, the values stay.",
            "Actor and critic have an encoder and an LSTM each.",
        )
    ):
        note(axes, 30, 320 + 20 * index, line)
    return figure


if __name__ == "__main__":
    target = Path(__file__).parent / "images" / "network.png"
    draw().savefig(target, dpi=150)
