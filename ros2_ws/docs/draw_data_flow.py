# SPDX-License-Identifier: MIT
"""Draws the data-flow figure of the README: data_flow.svg beside this file.

python ros2_ws/docs/draw_data_flow.py              writes the SVG
python ros2_ws/docs/draw_data_flow.py --png x.png  writes a PNG as well, to look at
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

INK = "#1f2933"
TRAINING, ROBOT, SHARED, OUTSIDE = "#dbeafe", "#dcfce7", "#fef3c7", "#f1f5f9"
WIDTH, HEIGHT = 130.0, 76.0


@dataclass(frozen=True)
class Box:
    """A box by its centre and size, in units of the drawing."""

    x: float
    y: float
    title: str
    text: str
    colour: str
    width: float = 22.0
    height: float = 11.0

    def draw(self, axes: Axes) -> None:
        """Draw the box with its two texts."""
        corner = (self.x - self.width / 2, self.y - self.height / 2)
        style = "round,pad=0,rounding_size=1.2"
        patch = FancyBboxPatch(
            corner, self.width, self.height, boxstyle=style, facecolor=self.colour, edgecolor=INK
        )
        axes.add_patch(patch)
        axes.text(
            self.x, self.y + 2.4, self.title, ha="center", va="center", weight="bold", size=9.5
        )
        axes.text(self.x, self.y - 2.0, self.text, ha="center", va="center", size=8)


def arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    label: str = "",
    label_at: tuple[float, float] | None = None,
    dashed: bool = False,
) -> None:
    """An arrow with a label, by default above its middle."""
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle="-|>",
            mutation_scale=13,
            color=INK,
            linewidth=1.3,
            linestyle="--" if dashed else "-",
            shrinkA=0,
            shrinkB=0,
        )
    )
    if label:
        x, y = label_at or ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 1.6)
        axes.text(x, y, label, ha="center", va="center", size=8, style="italic")


def draw() -> plt.Figure:
    """The whole figure."""
    figure, axes = plt.subplots(figsize=(WIDTH / 10, HEIGHT / 10))
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(0, HEIGHT)
    axes.axis("off")

    axes.text(2, 73.5, "training (Python, no ROS)", size=11, weight="bold", color="#1d4ed8")
    axes.text(2, 37, "robot cell (ROS 2)", size=11, weight="bold", color="#15803d")

    top, middle, low = 65.0, 49.5, 26.0
    world = Box(
        14, top, "simulated world", "equi_rl.sim: PyBullet,\ncompiled depth renderer", TRAINING
    )
    env = Box(
        47, top, "tasks and experts", "equi_rl.envs, .experts:\nobservation, reward", TRAINING
    )
    agent = Box(
        80, top, "recurrent agent", "equi_rl.nets, .agents:\nequivariant, sees history", TRAINING
    )
    model = Box(
        115, top, "models/<task>", "weights (safetensors)\n+ policy contract (JSON)", SHARED
    )
    core = Box(
        65,
        middle,
        "equi_core: the same functions on both sides",
        "geometry · top-down observation · action decoding · "
        "safety filter · trajectories · calibration",
        SHARED,
        width=126,
        height=9,
    )
    cameras = Box(
        14, low, "two depth cameras", "real, or equi_cell_sim\nwith noise and faults", OUTSIDE
    )
    fusion = Box(47, low, "equi_perception", "depth_fusion_node:\none top-down image", ROBOT)
    policy = Box(80, low, "equi_policy", "policy_node: plain torch,\nmemory made explicit", ROBOT)
    control = Box(
        115, low, "equi_control", "rtde_driver_node: limits,\njerk-limited servo stream", ROBOT
    )
    robot = Box(
        115,
        6.5,
        "UR5 + Robotiq 2F-85",
        "real, or the emulated\ncontroller of equi_cell_sim",
        OUTSIDE,
    )
    evaluation = Box(
        66, 6.5, "equi_evaluation", "runs, records and\nlabels episodes, reports", ROBOT
    )
    calibration = Box(
        25, 6.5, "calibration/", "camera poses in base_link,\nverdict in millimetres", SHARED
    )
    for box in (world, env, agent, model, core, cameras, fusion, policy, control, robot):
        box.draw(axes)
    evaluation.draw(axes)
    calibration.draw(axes)

    arrow(axes, (25, top), (36, top), "state")
    arrow(axes, (58, top + 1.5), (69, top + 1.5), "images")
    arrow(axes, (69, top - 1.5), (58, top - 1.5), "actions", label_at=(63.5, top - 3.1))
    arrow(axes, (91, top), (104, top), "export")

    arrow(axes, (25, low), (36, low), "clouds")
    arrow(axes, (58, low), (69, low), "Observation")
    arrow(axes, (91, low), (104, low), "DeltaCommand")
    arrow(axes, (112, low - 5.5), (112, 12), "servo, 125 Hz", label_at=(104.5, 16.2))
    arrow(axes, (118, 12), (118, low - 5.5), "state", label_at=(122, 16.2))
    arrow(axes, (31, 12), (42, low - 5.5), "extrinsics", label_at=(30.5, 16.2))
    arrow(axes, (71, 12), (77, low - 5.5), "RunEpisode", label_at=(67.5, 16.2))

    # What the driver reports goes back to perception and policy.
    axes.plot([115, 115], [low + 5.5, 37], color=INK, linewidth=1.3)
    axes.plot([115, 47], [37, 37], color=INK, linewidth=1.3)
    arrow(axes, (47, 37), (47, low + 5.5))
    arrow(axes, (80, 37), (80, low + 5.5))
    axes.text(
        97.5, 38.4, "RobotState, ExecutedCommand", ha="center", va="center", size=8, style="italic"
    )

    # The contract shapes the observation and the network, and is made from nothing else.
    arrow(axes, (115, top - 5.5), (115, middle + 4.5), "contract", (120.5, 56.8), dashed=True)
    for x in (40, 73):
        arrow(axes, (x, middle - 4.5), (x, low + 5.5), "contract", (x - 5.5, 41.3), dashed=True)
    arrow(axes, (47, middle + 4.5), (47, top - 5.5), "contract", (52.5, 56.8), dashed=True)
    figure.subplots_adjust(0, 0, 1, 1)
    return figure


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--png", type=Path, help="also write a PNG")
    options = parser.parse_args()
    # Text stays text, and the file does not change from run to run.
    plt.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "data_flow", "font.family": "sans-serif"}
    )
    figure = draw()
    target = Path(__file__).with_name("data_flow.svg")
    figure.savefig(target, metadata={"Date": None})
    if options.png:
        figure.savefig(options.png, dpi=110)


if __name__ == "__main__":
    main()
