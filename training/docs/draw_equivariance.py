# SPDX-License-Identifier: MIT
"""Draws images/equivariance.png: a shipped policy plays one scene in four rotations.

Top: what the policy sees at one step, and the move that it asks for. Bottom: the whole episode from
above. Every scene is simulated, none is a rotated copy of another. The deviations are printed.

Run it after changing a shipped policy: python training/docs/draw_equivariance.py
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

matplotlib.use("Agg")
from matplotlib import pyplot

import equi_rl
from equi_core.scene_seeds import TEST_SEED
from equi_rl.sim.scene import Scene

TASK, SEED = "block_picking", TEST_SEED + 7  # the policy tries the fixed block first
STEP = 6  # the first block did not lift; the policy goes to the other one
ROOT = Path(__file__).parents[2]
IMAGES = Path(__file__).parent / "images"
QUARTERS = 4
MOVE_COLOUR, MOVABLE, FIXED = "#d1495b", "#9ccb86", "#c9ccd1"


@dataclass(frozen=True)
class Played:
    """One episode: images (T, S, S), actions (T, 5), and the path of the gripper (T + 1, 2)."""

    scene: Scene
    depth_m: np.ndarray
    actions: np.ndarray
    path_xy_m: np.ndarray
    success: bool


def play(policy: equi_rl.Policy, quarter: int) -> Played:
    """The scene of SEED, rotated by quarter turns about the middle of the workspace, and played."""
    env = equi_rl.make_env(TASK, contract=policy.contract)
    centre = policy.contract.workspace.centre_xy_m
    scene = env.scene_of_seed(SEED).rotated(quarter * math.pi / 2, centre)
    observation, info = env.reset(seed=SEED, options={"scene": scene})
    state, ended = policy.start(), False
    depths, actions, path = [], [], [env.state().tcp_position_m[:2]]
    while not ended:
        action, state = policy.act(observation, state)
        depths.append(observation[0])
        actions.append(action)
        observation, _, terminated, truncated, info = env.step(action)
        state = policy.executed(state, info["executed_action"])
        path.append(env.state().tcp_position_m[:2])
        ended = terminated or truncated
    env.close()
    return Played(
        scene,
        np.array(depths),
        np.array(actions),
        np.array(path) - np.array(centre),
        bool(info["success"]),
    )


def turned_back(xy: np.ndarray, quarter: int) -> np.ndarray:
    """Vectors (..., 2) rotated clockwise by quarter turns."""
    for _ in range(quarter):
        xy = np.stack([xy[..., 1], -xy[..., 0]], axis=-1)
    return xy


def draw_view(axis: Axes, played: Played) -> None:
    """The image at STEP, shown with x to the right and y up; the gripper is in the middle."""
    image = np.rot90(played.depth_m[STEP])  # its rows go along x, its columns along y
    middle = (image.shape[0] - 1) / 2
    axis.imshow(image, cmap="viridis_r", vmin=0.0, vmax=0.3)
    x, y = 30.0 * played.actions[STEP, 1:3]
    axis.annotate(
        "",
        (middle + x, middle - y),
        (middle, middle),
        arrowprops={"color": MOVE_COLOUR, "width": 2.5, "headwidth": 9, "headlength": 9},
    )


def draw_episode(axis: Axes, played: Played, centre: np.ndarray) -> None:
    """Blocks as they stood at the start, and the gripper's path."""
    for item in played.scene.objects:
        half_x, half_y = item.size_m[0] / 2, item.size_m[1] / 2
        cos, sin = item.heading
        corners = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)]) * (half_x, half_y)
        rotated = corners @ np.array([[cos, sin], [-sin, cos]]) + np.array(item.xy_m) - centre
        axis.add_patch(
            Polygon(rotated, facecolor=MOVABLE if item.movable else FIXED, edgecolor="#555555")
        )
    axis.plot(*played.path_xy_m.T, "-o", color="#1b6ca8", markersize=2.5, linewidth=1)
    axis.plot(*played.path_xy_m[0], "s", color="black", markersize=4)
    axis.set(xlim=(-0.2, 0.2), ylim=(-0.2, 0.2), aspect="equal")


def main() -> None:
    """Play, draw, and print how far the episodes are from rotated copies of the first."""
    policy = equi_rl.load_policy(ROOT / "models" / TASK)
    centre = np.array(policy.contract.workspace.centre_xy_m)
    episodes = [play(policy, quarter) for quarter in range(QUARTERS)]
    figure, axes = pyplot.subplots(2, QUARTERS, figsize=(8.6, 4.9))
    for quarter, played in enumerate(episodes):
        draw_view(axes[0, quarter], played)
        draw_episode(axes[1, quarter], played, centre)
        x, y = played.actions[STEP, 1:3]
        axes[0, quarter].set_title(f"rotated by {90 * quarter}°", fontsize=9)
        axes[0, quarter].set_xlabel(f"move x {x:+.2f}, y {y:+.2f}", fontsize=8)
        steps = min(len(played.actions), len(episodes[0].actions))
        back = turned_back(played.actions[:steps, 1:3], quarter)
        path = turned_back(played.path_xy_m[: steps + 1], quarter)
        move = float(np.abs(back - episodes[0].actions[:steps, 1:3])[STEP].max())
        apart_m = float(np.abs(path - episodes[0].path_xy_m[: steps + 1]).max())
        sys.stdout.write(
            f"{90 * quarter:3d} degrees: {len(played.actions)} steps, success {played.success}, "
            f"move at step {STEP} off by {move:.1e}, path by {1000 * apart_m:.3f} mm\n"
        )
        axes[1, quarter].set_xlabel(f"{len(played.actions)} steps", fontsize=8)
    for axis in axes.flat:
        axis.set_xticks([])
        axis.set_yticks([])
    axes[0, 0].set_ylabel(f"the policy's view at step {STEP},\nand its next move", fontsize=8)
    axes[1, 0].set_ylabel("the episode from above\n(grey: fixed, green: movable)", fontsize=8)
    figure.tight_layout(pad=0.5)
    figure.savefig(IMAGES / "equivariance.png", dpi=100)


if __name__ == "__main__":
    main()
