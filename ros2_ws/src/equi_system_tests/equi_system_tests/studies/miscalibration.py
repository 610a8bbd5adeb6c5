# SPDX-License-Identifier: MIT
"""`equi-bench miscalibration`: what a wrong calibration costs, in millimetres and in success.

Each camera is displaced by a given distance in a direction drawn anew for every episode, while the
calibration stays. Measured on the fused image: its error against the training renderer. Measured on
the task: success of a policy that sees that image (or, with --expert, of the scripted expert that
has to detect the blocks in it). This sets the limits in the cell file.

Example: equi-bench miscalibration --policy models/block_picking --episodes 50 --plot curve.png
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from equi_cell_sim.camera_model import CameraRig, Miscalibration
from equi_core.locations.find import find_model
from equi_core.observation.image import ObservationError
from equi_core.statistics import SuccessRate
from equi_rl.envs import make_env
from equi_system_tests.studies.fused_camera import (
    FusedCamera,
    ImageError,
    displaced_cameras,
    mean_error,
    pose_scene,
)
from equi_system_tests.studies.fused_image_policies import (
    TASK,
    Actor,
    FusedImageExpert,
    FusedImagePolicy,
)

_FIRST_SEED = 10_000
"""Scenes that neither training nor its evaluation draws."""


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


def displaced_rig(displacement_mm: float) -> CameraRig:
    """The cell's cameras with their usual noise, each displaced by so much."""
    return dataclasses.replace(CameraRig(), miscalibration=Miscalibration(displacement_mm, 0.0))


def success_count(
    actor: Actor,
    displacement_mm: float,
    episodes: int,
    tick: Callable[[bool], None] | None = None,
) -> int:
    """Picked blocks in so many episodes with displaced cameras; no observation is no success."""
    rig = displaced_rig(displacement_mm)
    env = make_env(TASK, contract=actor.contract)
    successes = 0
    for seed in range(_FIRST_SEED, _FIRST_SEED + episodes):
        env.reset(seed=seed)
        camera = FusedCamera(env.world, displaced_cameras(rig, seed), actor.contract.image)
        actor.begin(env, camera, seed)
        done = success = False
        while not done:
            try:
                action = actor.act()
            except ObservationError:
                break
            _, _, terminated, truncated, info = env.step(action)
            actor.executed(info["executed_action"])
            done, success = terminated or truncated, bool(info["success"])
        successes += success
        if tick is not None:
            tick(success)
    env.close()
    return successes


def image_error(displacement_mm: float, scenes: int) -> ImageError:
    """Of the fused image of displaced cameras, over scenes."""
    env = make_env(TASK)
    errors = []
    for seed in range(_FIRST_SEED, _FIRST_SEED + scenes):
        pose_scene(env, seed)
        cameras = displaced_cameras(displaced_rig(displacement_mm), seed)
        errors.append(FusedCamera(env.world, cameras, env.contract.image).image_error())
    env.close()
    return mean_error(errors)


def run(options: list[str]) -> dict[str, object]:
    """Run it; prints a table and returns the metrics."""
    parsed = _parse(options)
    actor: Actor = FusedImageExpert() if parsed.expert else FusedImagePolicy(parsed.policy)
    levels = []
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("episodes", total=parsed.episodes * len(parsed.levels_mm))
        for displacement in parsed.levels_mm:
            successes = success_count(
                actor, displacement, parsed.episodes, lambda _: progress.advance(task)
            )
            low, high = SuccessRate(successes, parsed.episodes).interval
            error = image_error(displacement, parsed.scenes)
            levels.append(
                Level(
                    displacement,
                    parsed.episodes,
                    successes,
                    low,
                    high,
                    error.flat_mm,
                    error.wrong_share,
                )
            )
            progress.console.print(f"{displacement:g} mm: {successes}/{parsed.episodes}")
    table = Table("displaced mm", "success", "95 %", "image error mm", "pixels off > 10 mm")
    for level in levels:
        table.add_row(
            f"{level.displacement_mm:g}",
            f"{level.successes}/{level.episodes}",
            f"{level.success_low:.2f} .. {level.success_high:.2f}",
            f"{level.image_error_mm:.2f}",
            f"{level.image_wrong_share:.3f}",
        )
    Console().print(table)
    if parsed.plot is not None:
        curve(levels, actor.name).savefig(parsed.plot, dpi=110)
    return {"actor": actor.name, "levels": [dataclasses.asdict(level) for level in levels]}


def curve(levels: list[Level], actor: str) -> Figure:
    """Success and image error over the displacement."""
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    x = [level.displacement_mm for level in levels]
    rates = np.array([level.successes / level.episodes for level in levels])
    low = rates - np.array([level.success_low for level in levels])
    high = np.array([level.success_high for level in levels]) - rates
    bars = np.maximum([low, high], 0.0)
    counts = sorted({level.episodes for level in levels})
    episodes = " to ".join(str(count) for count in (counts[0], counts[-1])[: len(counts)])
    left.errorbar(x, rates, yerr=bars, marker="o", capsize=3, color="#2a7f9e")
    left.set(
        xlabel="each camera displaced by [mm]",
        ylabel="success",
        ylim=(0, 1.03),
        title=f"{actor}, {episodes} episodes each",
    )
    right.plot(x, [level.image_error_mm for level in levels], marker="o", color="#d1495b")
    right.set(
        xlabel="each camera displaced by [mm]",
        ylabel="mean depth error [mm]",
        ylim=(0, None),
        title="Fused image, away from edges",
    )
    for axis in (left, right):
        axis.title.set_fontsize(10)
        axis.grid(alpha=0.3)
    return figure


def _parse(options: list[str]) -> argparse.Namespace:
    summary, _, example = (__doc__ or "").partition("Example:")
    parser = argparse.ArgumentParser(
        prog="equi-bench miscalibration", description=summary, epilog=f"Example:{example}"
    )
    parser.add_argument("--levels-mm", type=float, nargs="+", default=[0, 2, 5, 10, 20])
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--scenes", type=int, default=20, help="for the error of the image")
    parser.add_argument("--policy", type=Path, default=None, help="folder; the installed model")
    parser.add_argument(
        "--expert", action="store_true", help="the scripted expert on the fused image, no policy"
    )
    parser.add_argument("--plot", type=Path, default=None, help="write the curve as PNG")
    parsed = parser.parse_args(options)
    if parsed.episodes < 1 or parsed.scenes < 1 or min(parsed.levels_mm) < 0:
        parser.error("--episodes and --scenes must be at least 1, --levels-mm not negative")
    if parsed.policy is None:
        parsed.policy = find_model(TASK)
    return parsed
