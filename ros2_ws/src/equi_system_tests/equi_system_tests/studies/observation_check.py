# SPDX-License-Identifier: MIT
"""`equi-bench observation`: fused image of the two side cameras against the training renderer.

Draws scenes and gripper poses at random (open, closing and holding; over the table and low at an
object), renders each with both simulated cameras, fuses as the robot does, and compares with the
image that training draws of the same scene. Once with exact cameras, once with the default errors
(noise, missing pixels, miscalibration). `--image` writes examples side by side.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from equi_calibration.synthetic.depth_camera import cloud_of
from equi_cell_sim.camera_model import CameraRig, Miscalibration
from equi_cell_sim.depth_camera import DepthCamera
from equi_core.contract import PolicyContract
from equi_core.observation.builder import ObservationBuilder, RobotPose
from equi_core.observation.image import compose_observation
from equi_rl.envs import TASKS, make_env
from equi_rl.sim.scene import Scene
from equi_rl.sim.world import World

FloatImage = NDArray[np.float32]

EDGE_PX = 2
"""Pixels this near to an edge of the true image are counted apart: there, half a pixel of sideways
error is centimetres of height."""
WRONG_M = 0.01


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """One scene: training's image, the fused image, and the share that nobody saw."""

    true: FloatImage
    fused: FloatImage
    unseen_fraction: float

    @property
    def error_m(self) -> FloatImage:
        """Absolute depth error (S, S)."""
        return np.abs(self.true[0] - self.fused[0])

    @property
    def away_from_edges(self) -> NDArray[np.bool_]:
        """Pixels (S, S) further than EDGE_PX from a step in the true image."""
        kernel = np.ones((2 * EDGE_PX + 1, 2 * EDGE_PX + 1), np.uint8)
        high, low = cv2.dilate(self.true[0], kernel), cv2.erode(self.true[0], kernel)
        return np.asarray(high - low < 0.005)


class ObservationCheck:
    """Compares images of random scenes of one task."""

    def __init__(self, task: str, rig: CameraRig, seed: int = 0) -> None:
        self.contract = PolicyContract(task=task)
        self._env = make_env(task)
        self._rig = rig
        # The calibration file says where the cameras should be, not where they are.
        self._builder = ObservationBuilder(
            self.contract.image, {spec.name: spec.base_from_camera for spec in rig.cameras}
        )
        self._rng = np.random.default_rng([seed, 7])
        self._seed = seed
        self._world: World = self._env.world

    def compare(self, index: int) -> Comparison:
        """Scene number `index`."""
        rig = dataclasses.replace(
            self._rig,
            miscalibration=dataclasses.replace(self._rig.miscalibration, seed=index),
        )
        world, image = self._world, self.contract.image
        self._env.reset(seed=self._seed + index)
        world.reset(self._posed(self._env.state().scene))
        state = world.get_state()
        tcp, yaw = state.tcp_position_m, state.yaw_rad
        shapes = world.shapes(with_robot=True)
        clouds = {}
        for spec in rig.cameras:
            pose = rig.miscalibration.true_pose(spec.base_from_camera, spec.name)
            camera = DepthCamera(spec, rig.noise, pose, seed=index)
            clouds[spec.name] = cloud_of(spec, camera.capture(shapes, with_colour=False))
        joints, _ = world.arm.measured()
        robot = RobotPose(tuple(joints), tcp, yaw, state.scene.opening, state.holding)
        goal = state.scene.goal_xy_m
        fused = self._builder.build(clouds, robot, goal)
        true = compose_observation(
            world.heights(image, tcp[:2]),
            tcp,
            yaw,
            state.scene.opening,
            state.holding,
            image,
            goal_xy_m=goal,
        )
        return Comparison(true, fused.image, fused.unseen_fraction)

    def close(self) -> None:
        """Release the world."""
        self._env.close()

    def _posed(self, scene: Scene) -> Scene:
        """The scene with the gripper somewhere an episode brings it."""
        rng, box = self._rng, self.contract.workspace
        if rng.uniform() < 0.5:
            item = scene.objects[rng.integers(len(scene.objects))]
            x, y = np.array(item.xy_m) + rng.uniform(-0.04, 0.04, 2)
            z = rng.uniform(0.09, 0.16)
        else:
            x, y = rng.uniform((0.35, -0.15), (0.65, 0.15))
            z = rng.uniform(0.10, 0.24)
        return dataclasses.replace(
            scene,
            tcp_position_m=(
                float(np.clip(x, box.x_min_m, box.x_max_m)),
                float(np.clip(y, box.y_min_m, box.y_max_m)),
                float(z),
            ),
            yaw_rad=float(rng.uniform(-np.pi / 2, np.pi / 2)),
            opening=float(rng.choice([1.0, 0.6])),
        )


def run(options: list[str]) -> dict[str, object]:
    """Entry point of the benchmark."""
    parsed = _parse(options)
    rigs = {
        "exact": CameraRig().without_errors(),
        "default": dataclasses.replace(
            CameraRig(), miscalibration=Miscalibration(position_mm=2.0, rotation_deg=0.15)
        ),
    }
    table = Table(title=f"Fused against training image, {parsed.scenes} scenes of {parsed.task}")
    for column in (
        "cameras",
        "mean [mm]",
        "p95 [mm]",
        "away from edges: p95 [mm]",
        "wrong by > 10 mm",
        "unseen",
    ):
        table.add_column(column, justify="left" if column == "cameras" else "right")
    metrics: dict[str, object] = {"task": parsed.task, "scenes": parsed.scenes}
    for name, rig in rigs.items():
        check = ObservationCheck(parsed.task, rig, parsed.seed)
        results = [check.compare(i) for i in track(range(parsed.scenes), f"{name} cameras")]
        check.close()
        row = summary(results)
        table.add_row(
            name,
            f"{row['mean_mm']:.2f}",
            f"{row['p95_mm']:.2f}",
            f"{row['flat_p95_mm']:.2f}",
            f"{row['wrong_fraction']:.2%}",
            f"{row['unseen_fraction']:.2%}",
        )
        metrics |= {f"{name}_{key}": round(value, 5) for key, value in row.items()}
        if parsed.image and name == "default":
            write_image(results, parsed.image)
    Console(stderr=True).print(table)
    return metrics


def summary(results: list[Comparison]) -> dict[str, float]:
    """Error metrics over all pixels of all scenes."""
    errors = np.array([item.error_m for item in results])
    flat = np.array([item.away_from_edges for item in results])
    return {
        "mean_mm": float(errors.mean() * 1e3),
        "p95_mm": float(np.percentile(errors, 95) * 1e3),
        "flat_p95_mm": float(np.percentile(errors[flat], 95) * 1e3),
        "wrong_fraction": float((errors > WRONG_M).mean()),
        "unseen_fraction": float(np.mean([item.unseen_fraction for item in results])),
    }


def write_image(results: list[Comparison], path: Path, count: int = 4) -> None:
    """Training image, fused image and their difference (black 0, white 30 mm) of a few scenes."""
    rows = []
    for item in results[:count]:
        near, far = float(item.true[0].min()), float(item.true[0].max())

        def grey(depth: FloatImage, near: float = near, far: float = far) -> NDArray[np.uint8]:
            return np.clip(255 * (far - depth) / (far - near), 0, 255).astype(np.uint8)

        difference = np.clip(item.error_m / 0.03 * 255, 0, 255).astype(np.uint8)
        panels = [grey(item.true[0]), grey(item.fused[0]), difference]
        big = [np.kron(p, np.ones((3, 3), dtype=np.uint8)) for p in panels]
        rows.append(np.hstack([np.pad(b, 4, constant_values=255) for b in big]))
    grid = np.vstack(rows)
    header = np.full((34, grid.shape[1]), 255, dtype=np.uint8)
    for index, text in enumerate(("training", "fused, two cameras", "difference, white 30 mm")):
        corner = (8 + index * 260, 23)
        cv2.putText(header, text, corner, cv2.FONT_HERSHEY_SIMPLEX, 0.55, (30,), 1, cv2.LINE_AA)
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.vstack([header, grid]))


def _parse(options: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="equi-bench observation",
        description="Compare fused and training images. Example: equi-bench observation "
        "--scenes 100 --image observation.png",
    )
    parser.add_argument("--task", default="block_picking", choices=TASKS)
    parser.add_argument("--scenes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--image", type=Path, default=None, help="PNG with a few scenes")
    parsed = parser.parse_args(options)
    if parsed.scenes < 1:
        parser.error(f"--scenes {parsed.scenes}: at least 1")
    return parsed
