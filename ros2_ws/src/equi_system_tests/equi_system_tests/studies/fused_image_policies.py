# SPDX-License-Identifier: MIT
"""Policies that act on the fused image: a trained policy, or a scripted expert.

The expert of training is given the true state, so its success would not depend on any camera. Here
it gets only what the fused image shows: it detects the blocks there, as a policy has to.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_core.contract import ImageSpec, PolicyContract
from equi_policy.deployed_policy import DeployedPolicy
from equi_rl.envs.base import HiddenPropertyEnv
from equi_rl.experts import ExpertConfig, make_expert
from equi_rl.sim.scene import SceneObject, WorldState
from equi_system_tests.studies.fused_camera import FusedCamera

FloatImage = NDArray[np.float32]
Action = NDArray[np.float32]

TASK = "block_picking"
_BLOCK_TOP_M = 0.025
"""Pixels higher than this belong to a block."""
_FEWEST_PIXELS = 20
_FIRST_REACH_M = 0.06
"""The first detection may be off by the whole displacement ..."""
_LATER_REACH_M = 0.03
"""... later ones follow the block."""


class Actor(Protocol):
    """Plays one episode after the other."""

    @property
    def name(self) -> str:
        """For tables and plots."""

    @property
    def contract(self) -> PolicyContract:
        """Image, action and workspace."""

    def begin(self, env: HiddenPropertyEnv, camera: FusedCamera, seed: int) -> None:
        """A new episode."""

    def act(self) -> Action:
        """The next action (5,), from a new observation."""

    def executed(self, action: Action) -> None:
        """What the robot really did of it."""


class FusedImagePolicy:
    """An exported policy; its observation is the fused image."""

    def __init__(self, folder: Path) -> None:
        self._policy = DeployedPolicy.load(folder)
        self.contract = self._policy.contract
        self.name = f"policy {self.contract.task}"
        self._state: Any = self._policy.initial_state()
        self._camera: FusedCamera | None = None

    def begin(self, env: HiddenPropertyEnv, camera: FusedCamera, seed: int) -> None:
        """Forget the last episode."""
        del env, seed
        self._camera = camera
        self._state = self._policy.initial_state()

    def act(self) -> Action:
        """The policy's mean action."""
        if self._camera is None:
            raise RuntimeError("begin() an episode before act()")
        action, self._state = self._policy.act(self._camera.observation(), self._state)
        return action

    def executed(self, action: Action) -> None:
        """The policy remembers what was executed."""
        self._state = self._state.with_executed(action)


class FusedImageExpert:
    """The scripted expert, given only what the fused image shows."""

    name = "expert that finds the blocks in the image"

    def __init__(self) -> None:
        self.contract = PolicyContract(task=TASK)
        self._expert = make_expert(TASK, self.contract, ExpertConfig())
        self._known: tuple[SceneObject, ...] = ()
        self._env: HiddenPropertyEnv | None = None
        self._camera: FusedCamera | None = None
        self._memory: Any = None
        self._rng = np.random.default_rng(0)

    def begin(self, env: HiddenPropertyEnv, camera: FusedCamera, seed: int) -> None:
        """Nothing is known before the first observation."""
        self._env, self._camera = env, camera
        self._known, self._memory = (), None
        self._rng = np.random.default_rng(seed)

    def act(self) -> Action:
        """The expert's action for the scene as observed."""
        if self._env is None or self._camera is None:
            raise RuntimeError("begin() an episode before act()")
        state = self._perceived(self._env.state(), self._camera.heights())
        if self._memory is None:
            self._memory = self._expert.start(state, self._rng)
        action, self._memory = self._expert.act(state, self._memory)
        return np.asarray(action, dtype=np.float32)

    def executed(self, action: Action) -> None:
        """The expert acts on the scene, not on what was executed."""

    def _perceived(self, state: WorldState, height_m: FloatImage) -> WorldState:
        """The state with the blocks where the image shows them.

        A block out of view or under the gripper stays where it was last seen; one that is held is
        between the fingers.
        """
        found = detect_blocks(height_m, state.tcp_position_m, self.contract.image)
        reach = _LATER_REACH_M if self._known else _FIRST_REACH_M
        placed = []
        for index, item in enumerate(self._known or state.scene.objects):
            if state.holding and state.held_object == index:
                placed.append(dataclasses.replace(item, position_m=state.tcp_position_m))
                continue
            distances = [np.hypot(x - item.xy_m[0], y - item.xy_m[1]) for x, y, _ in found]
            if distances and min(distances) < reach:
                x, y, yaw = found[int(np.argmin(distances))]
                item = dataclasses.replace(item, position_m=(x, y, item.position_m[2]), yaw_rad=yaw)
            placed.append(item)
        self._known = tuple(placed)
        return dataclasses.replace(
            state, scene=dataclasses.replace(state.scene, objects=self._known)
        )


def detect_blocks(
    height_m: FloatImage, tcp_position_m: tuple[float, float, float], image: ImageSpec
) -> list[tuple[float, float, float]]:
    """Positions x, y [m] and yaw [rad] of raised regions of a height image (S, S)."""
    raised = (height_m > _BLOCK_TOP_M).astype(np.uint8)
    count, labels = cv2.connectedComponents(raised)
    blocks = []
    for label in range(1, count):
        rows, columns = np.nonzero(labels == label)
        if len(rows) < _FEWEST_PIXELS:
            continue
        (row, column), _, angle_deg = cv2.minAreaRect(
            np.column_stack([rows, columns]).astype(np.float32)
        )
        middle = (image.size_px - 1) / 2
        blocks.append(
            (
                tcp_position_m[0] + (row - middle) * image.pixel_m,
                tcp_position_m[1] + (column - middle) * image.pixel_m,
                float(np.radians(angle_deg)),
            )
        )
    return blocks
