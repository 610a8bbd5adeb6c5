# SPDX-License-Identifier: MIT
"""The scenes of the test seeds as a file for the operator of a real cell.

python -m equi_rl.export.scene_layouts models/block_pushing
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from equi_core.contract import PolicyContract
from equi_core.files.scene_layout import (
    FILE_NAME,
    LayoutObject,
    SceneLayout,
    SceneLayouts,
    layouts_of,
)
from equi_core.scene_seeds import TEST_SEED
from equi_rl.envs import make_env

COUNT = 400
"""Enough for 100 counted episodes: at most four attempts each."""


def scenes_of_seeds(contract: PolicyContract, first_seed: int, count: int) -> SceneLayouts:
    """The scenes that the task draws for consecutive seeds."""
    env = make_env(contract.task)
    scenes = []
    try:
        for seed in range(first_seed, first_seed + count):
            scene = env.scene_of_seed(seed)
            objects = tuple(
                LayoutObject(
                    kind=item.kind.value,
                    x_m=round(item.position_m[0], 5),
                    y_m=round(item.position_m[1], 5),
                    yaw_rad=round(item.yaw_rad, 5),
                    size_m=item.size_m,
                    movable=item.movable,
                )
                for item in scene.objects
            )
            scenes.append(SceneLayout(seed, objects, scene.goal_xy_m))
    finally:
        env.close()
    return layouts_of(contract.task, scenes)


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="equi-scenes", description=f"Write {FILE_NAME} into a model folder."
    )
    parser.add_argument("model", type=Path, help="model folder")
    parser.add_argument("--seed", type=int, default=TEST_SEED, help="of the first scene")
    parser.add_argument("--count", type=int, default=COUNT)
    parsed = parser.parse_args(arguments)
    try:
        contract = PolicyContract.load(parsed.model / "contract.json", allow_unsigned=True)
        layouts = scenes_of_seeds(contract, parsed.seed, parsed.count)
    except ValueError as error:
        sys.stderr.write(f"equi-scenes: {error}\n")
        return 2
    layouts.save(parsed.model / FILE_NAME)
    return 0


if __name__ == "__main__":
    sys.exit(main())
