# SPDX-License-Identifier: MIT
"""Drawer opening: of two identical drawers, one is locked; open the other."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from equi_rl.envs.base import HiddenPropertyEnv, Outcome, start_yaw
from equi_rl.sim.scene import ObjectKind, Scene, SceneObject, WorldState

CABINET_M = (0.11, 0.114, 0.054)
SPACING_M = 0.12
DISTANCE_M = (0.15, 0.20)
"""From the middle of the workspace to the line on which both cabinets stand."""
ASIDE_M = 0.10
"""The middle of the pair lies at most this far to either side."""
OPENED_M = 0.05


class DrawerOpening(HiddenPropertyEnv):
    """Reward 1 when the unlocked drawer is pulled out by more than 5 cm."""

    task: ClassVar[str] = "drawer_opening"

    def sample_scene(self, rng: np.random.Generator) -> Scene:
        """Two cabinets side by side at any heading, opening towards the middle."""
        centre = self.contract.workspace.centre_xy_m
        away = float(rng.uniform(*DISTANCE_M))
        aside = float(rng.uniform(-ASIDE_M, ASIDE_M))
        unlocked = bool(rng.integers(2))
        objects = tuple(
            SceneObject(
                ObjectKind.DRAWER,
                (centre[0] + away, centre[1] + aside + side * SPACING_M / 2, 0.0),
                0.0,
                mobility,
                size_m=CABINET_M,
                mass_kg=0.5,
                friction=1.0,
            )
            for side, mobility in ((-1, unlocked), (1, not unlocked))
        )
        scene = Scene(objects=objects, tcp_position_m=(*centre, 0.2), yaw_rad=start_yaw(rng))
        return scene.rotated(float(rng.uniform(0.0, 2 * math.pi)), centre)

    def outcome(self, state: WorldState) -> Outcome:
        """Success when the unlocked drawer is open; nothing can fail."""
        if any(item.extension_m > OPENED_M for item in state.scene.objects if item.movable):
            return Outcome(reward=1.0, success=True)
        return Outcome(0.0)
