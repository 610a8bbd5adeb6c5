"""`equi-bench miscalibration`: what a wrong calibration costs, in millimetres and in success.

Each camera is displaced by a given distance in a random direction while the calibration file stays.
Measured on the fused image: its error against the training renderer. Measured on the task: success
of picking when the expert does not know where the blocks are but finds them in the fused image, as
a policy has to. This sets the limits in the cell file.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path

import cv2
import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from equi_cell_sim.camera_model import CameraRig, Miscalibration
from equi_cell_sim.depth_camera import DepthCamera, points_of
from equi_cell_sim.observation_check import ObservationCheck
from equi_core.contract import ImageSpec
from equi_core.height_repair import drop_spikes, fill_holes
from equi_core.projection import CameraCloud, fuse_clouds
from equi_core.robot_shape import robot_volume
from equi_core.statistics import SuccessRate
from equi_rl.envs import make_env
from equi_rl.experts import ExpertConfig, make_expert
from equi_rl.sim.scene import SceneObject, WorldState
from equi_rl.sim.world import World

FloatImage = NDArray[np.float32]

_TASK = "block_picking"
_BLOCK_TOP_M = 0.025
"""Pixels higher than this belong to a block."""
_FEWEST_PIXELS = 20


@dataclasses.dataclass(frozen=True)
class Level:
    """Results at one displacement."""

    displacement_mm: float
    episodes: int
    successes: int
    success_low: float
    success_high: float
    """95 % Wilson interval."""
    image_error_mm: float
    """Mean absolute depth error away from edges."""
    image_wrong_share: float
    """Share of all pixels that are off by more than 10 mm."""


class LookingExpert:
    """An expert that finds the blocks in the fused image of displaced cameras."""

    def __init__(self, world: World, rig: CameraRig, image: ImageSpec, seed: int) -> None:
        self._world = world
        self._image = image
        self._nominal = [spec.base_from_camera for spec in rig.cameras]
        self._cameras = [
            DepthCamera(
                spec,
                rig.noise,
                rig.miscalibration.true_pose(spec.base_from_camera, spec.name),
                seed=seed,
            )
            for spec in rig.cameras
        ]
        self._known: tuple[SceneObject, ...] = ()

    def perceived(self, state: WorldState) -> WorldState:
        """The state with the blocks where the image shows them.

        A block out of view or under the gripper stays where it was last seen; one that is held is
        between the fingers.
        """
        found = blocks_in(self._heights(state), state.tcp_position_m, self._image)
        known = self._known or state.scene.objects
        placed = []
        for index, item in enumerate(known):
            if state.holding and state.held_object == index:
                placed.append(dataclasses.replace(item, position_m=state.tcp_position_m))
                continue
            distances = [np.hypot(x - item.xy_m[0], y - item.xy_m[1]) for x, y, _ in found]
            # The first look may be off by the whole displacement; later ones follow the block.
            reach = 0.06 if not self._known else 0.03
            if distances and min(distances) < reach:
                x, y, yaw = found[int(np.argmin(distances))]
                item = dataclasses.replace(item, position_m=(x, y, item.position_m[2]), yaw_rad=yaw)
            placed.append(item)
        self._known = tuple(placed)
        return dataclasses.replace(
            state, scene=dataclasses.replace(state.scene, objects=self._known)
        )

    def _heights(self, state: WorldState) -> FloatImage:
        shapes = self._world.shapes(with_robot=True)
        clouds = []
        for camera, nominal in zip(self._cameras, self._nominal, strict=True):
            frame = camera.capture(shapes, with_colour=False)
            points = np.empty((frame.depth_units.size, 4), dtype=np.float32)
            spec = camera.spec
            count = points_of(
                frame.depth_units,
                frame.unit_m,
                spec.focal_px,
                *spec.centre_px,
                False,
                4,
                frame.colour,
                points,
            )
            clouds.append(CameraCloud(points[:count], nominal))
        joints, _ = self._world.arm.measured()
        volume = robot_volume(joints, state.scene.opening, self._image)
        fused = fuse_clouds(
            clouds,
            state.tcp_position_m,
            self._image,
            robot_capsules_m=volume.capsules,
            robot_boxes_m=volume.boxes,
        )
        return fill_holes(drop_spikes(fused.height_m))


def blocks_in(
    height_m: FloatImage, tcp_position_m: tuple[float, float, float], image: ImageSpec
) -> list[tuple[float, float, float]]:
    """Places x, y [m] and yaw [rad] of raised regions of a height image (S, S)."""
    raised = (height_m > _BLOCK_TOP_M).astype(np.uint8)
    count, labels = cv2.connectedComponents(raised)
    places = []
    for label in range(1, count):
        rows, columns = np.nonzero(labels == label)
        if len(rows) < _FEWEST_PIXELS:
            continue
        (row, column), _, angle_deg = cv2.minAreaRect(
            np.column_stack([rows, columns]).astype(np.float32)
        )
        middle = (image.size_px - 1) / 2
        places.append(
            (
                tcp_position_m[0] + (row - middle) * image.pixel_m,
                tcp_position_m[1] + (column - middle) * image.pixel_m,
                float(np.radians(angle_deg)),
            )
        )
    return places


def success_count(
    displacement_mm: float, episodes: int, tick: Callable[[], None] | None = None
) -> int:
    """Picked blocks in so many episodes with displaced cameras."""
    env = make_env(_TASK)
    expert = make_expert(_TASK, env.contract, ExpertConfig())
    successes = 0
    for seed in range(episodes):
        env.reset(seed=seed)
        rig = dataclasses.replace(
            CameraRig(),
            miscalibration=Miscalibration(displacement_mm, 0.0, seed),
        )
        looking = LookingExpert(env.world, rig, env.contract.image, seed)
        state = looking.perceived(env.state())
        memory = expert.start(state, np.random.default_rng(seed))
        done = False
        while not done:
            action, memory = expert.act(state, memory)
            _, _, terminated, truncated, info = env.step(action)
            done = terminated or truncated
            if not done:
                state = looking.perceived(env.state())
        successes += bool(info["success"])
        if tick is not None:
            tick()
    env.close()
    return successes


def image_error(displacement_mm: float, rotation_deg: float, scenes: int) -> tuple[float, float]:
    """Mean depth error away from edges [mm], and share of pixels off by more than 10 mm."""
    rig = dataclasses.replace(
        CameraRig(), miscalibration=Miscalibration(displacement_mm, rotation_deg, 0)
    )
    check = ObservationCheck(_TASK, rig)
    errors, wrong = [], []
    for index in range(scenes):
        comparison = check.compare(index)
        errors.append(float(comparison.error_m[comparison.away_from_edges].mean()))
        wrong.append(float((comparison.error_m > 0.01).mean()))
    check.close()
    return 1000 * float(np.mean(errors)), float(np.mean(wrong))


def run(options: list[str]) -> dict[str, object]:
    """Run it; prints a table and returns plain figures."""
    parser = argparse.ArgumentParser(prog="equi-bench miscalibration", description=__doc__)
    parser.add_argument("--levels-mm", type=float, nargs="+", default=[0, 2, 5, 10, 20])
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--scenes", type=int, default=20)
    parser.add_argument("--picture", type=Path, default=None, help="write the curve as PNG")
    parsed = parser.parse_args(options)
    levels = []
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("episodes", total=parsed.episodes * len(parsed.levels_mm))
        for displacement in parsed.levels_mm:
            successes = success_count(displacement, parsed.episodes, lambda: progress.advance(task))
            low, high = SuccessRate(successes, parsed.episodes).interval
            error, wrong = image_error(displacement, 0.0, parsed.scenes)
            levels.append(Level(displacement, parsed.episodes, successes, low, high, error, wrong))
            progress.console.print(f"{displacement:g} mm: {successes}/{parsed.episodes}")
    before = image_error(50.0, 5.0, parsed.scenes)
    after = image_error(0.3, 0.03, parsed.scenes)
    table = Table("displaced mm", "success", "95 %", "image error mm", "pixels off > 10 mm")
    for level in levels:
        table.add_row(
            f"{level.displacement_mm:g}",
            f"{level.successes}/{level.episodes}",
            f"{level.success_low:.2f} .. {level.success_high:.2f}",
            f"{level.image_error_mm:.2f}",
            f"{level.image_wrong_share:.3f}",
        )
    console = Console()
    console.print(table)
    console.print(
        f"fused image before calibration (50 mm, 5 deg): {before[0]:.1f} mm, {before[1]:.1%} off; "
        f"after (0.3 mm, 0.03 deg): {after[0]:.1f} mm, {after[1]:.1%} off"
    )
    if parsed.picture is not None:
        curve(levels).savefig(parsed.picture, dpi=110)
    return {
        "levels": [dataclasses.asdict(level) for level in levels],
        "before_image_error_mm": before[0],
        "before_wrong_share": before[1],
        "after_image_error_mm": after[0],
        "after_wrong_share": after[1],
    }


def curve(levels: list[Level]) -> Figure:
    """Success and image error over the displacement."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    x = [level.displacement_mm for level in levels]
    rates = np.array([level.successes / level.episodes for level in levels])
    low = rates - np.array([level.success_low for level in levels])
    high = np.array([level.success_high for level in levels]) - rates
    left.errorbar(x, rates, yerr=[low, high], marker="o", capsize=3, color="#2a7f9e")
    left.set(
        xlabel="each camera displaced by [mm]",
        ylabel="success",
        ylim=(0, 1.03),
        title=f"Picking, {levels[0].episodes} episodes each",
    )
    right.plot(x, [level.image_error_mm for level in levels], marker="o", color="#d1495b")
    right.set(
        xlabel="each camera displaced by [mm]",
        ylabel="mean depth error [mm]",
        title="Fused image, away from edges",
    )
    for axis in (left, right):
        axis.grid(alpha=0.3)
    return figure
