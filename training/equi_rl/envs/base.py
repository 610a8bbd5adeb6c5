# SPDX-License-Identifier: MIT
"""What the four tasks share: observation, action, episode, and the bookkeeping of both.

An episode starts at rest above the middle of the workspace with a random gripper yaw. One step
moves the gripper by the executed (clipped) action, then opens or closes it, waits for rest, and
draws the observation. It ends with `terminated` on success or on a failure that `info["failure"]`
names, and with `truncated` when the contract's step limit is reached without either.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from equi_core.action import ActionError, decode, encode
from equi_core.contract import PolicyContract
from equi_core.observation.image import compose_observation
from equi_core.step_limits import Reason, StepLimits, limit_step
from equi_rl.envs.randomisation import DomainRandomisation, EpisodeVariation
from equi_rl.sim.errors import SceneError
from equi_rl.sim.physics_config import PhysicsConfig
from equi_rl.sim.scene import ObjectKind, Scene, WorldState
from equi_rl.sim.world import World

FloatImage = NDArray[np.float32]

_SCENE_STREAM = 0x5CE7E
LEFT_WORKSPACE = "an object left the workspace"


@dataclass(frozen=True)
class Outcome:
    """What one step led to."""

    reward: float
    success: bool = False
    failure: str = ""
    """Why the episode ended in failure; empty if it did not."""


class HiddenPropertyEnv(gymnasium.Env[FloatImage, NDArray[np.float32]], abc.ABC):
    """Base of the tasks. Subclasses draw scenes and decide the outcome of a step."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 5}  # noqa: RUF012
    task: ClassVar[str]

    def __init__(
        self,
        render_mode: str | None = None,
        contract: PolicyContract | None = None,
        randomisation: DomainRandomisation | None = None,
        physics: PhysicsConfig | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode '{render_mode}' must be None or 'rgb_array'")
        self.contract = contract or PolicyContract(task=self.task)
        self._limits = StepLimits.of_contract(self.contract.action, self.contract.workspace)
        self.render_mode = render_mode
        self.randomisation = randomisation
        self.world = World(physics)
        size = self.contract.image.size_px
        self.observation_space = spaces.Box(0.0, 1.0, (2, size, size), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (5,), np.float32)
        self._variation = EpisodeVariation()
        self._noise_rng = np.random.default_rng(0)
        self._start_yaw_rad = 0.0
        self._steps = 0
        self._running = False
        self._start: WorldState = self.world.get_state()
        self._state: WorldState = self._start

    # Tasks ------------------------------------------------------------------------------------

    @abc.abstractmethod
    def sample_scene(self, rng: np.random.Generator) -> Scene:
        """Draw the start of an episode; its distribution is invariant under quarter turns."""

    @abc.abstractmethod
    def outcome(self, state: WorldState) -> Outcome:
        """Reward, success and failure of the state that a step led to."""

    def scene_of_seed(self, seed: int) -> Scene:
        """The scene that `reset(seed=seed)` starts from, before any randomisation."""
        return self.sample_scene(_scene_rng(seed))

    # Gymnasium --------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatImage, dict[str, Any]]:
        """Start an episode; `options={"scene": Scene}` starts it from a given scene."""
        super().reset(seed=seed)
        if seed is not None:
            self._np_random = _scene_rng(seed)
        given = (options or {}).get("scene")
        if given is not None and not isinstance(given, Scene):
            raise SceneError(f"options['scene'] is a {type(given).__name__}; it must be a Scene")
        scene = self.sample_scene(self.np_random) if given is None else given
        self._noise_rng = np.random.default_rng(self.np_random.integers(2**63))
        self._variation = EpisodeVariation()
        if self.randomisation is not None:
            self._variation = self.randomisation.sample(self._noise_rng)
            scene = self._variation.applied_to(scene)
        self.world.reset(scene)
        self._start_yaw_rad = self.world.commanded_pose()[1]
        self._steps = 0
        self._running = True
        self._start = self._state = self.world.get_state()
        return self._observe(), self._info(Outcome(0.0), np.zeros(5), ())

    def step(self, action: ArrayLike) -> tuple[FloatImage, float, bool, bool, dict[str, Any]]:
        """Execute one policy vector (5,) in [-1, 1], order (w, x, y, z, r).

        Raises ActionError if it is not five finite numbers; the episode can then continue.
        """
        if not self._running:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        spec = self.contract.action
        position, yaw = self.world.commanded_pose()
        step = limit_step(decode(action, spec), position, yaw, self._start_yaw_rad, self._limits)
        executed = step.executed
        target = [start + way for start, way in zip(position, executed.step_m, strict=True)]
        self.world.move_tcp(target, yaw + executed.yaw_rad, self._variation.latency_s)
        self.world.move_gripper(1.0 - executed.closedness)
        self.world.wait_for_rest()
        self._state = self.world.get_state()
        self._steps += 1
        outcome = self.outcome(self._state)
        terminated = outcome.success or outcome.failure != ""
        truncated = self._steps >= self.contract.max_steps and not terminated
        self._running = not (terminated or truncated)
        info = self._info(outcome, encode(executed, spec), step.reasons)
        return self._observe(), outcome.reward, terminated, truncated, info

    def render(self) -> NDArray[np.uint8] | None:
        """Side view (H, W, 3) of the cell."""
        if self.render_mode != "rgb_array":
            return None
        from equi_rl.sim.cameras import render_rgb, side_view_camera

        return render_rgb(self.world, side_view_camera())

    def close(self) -> None:
        """Release the physics server."""
        self.world.close()

    def state(self) -> WorldState:
        """What is really the case, hidden property included: for experts, tests and reports."""
        return self._state

    # Inside -----------------------------------------------------------------------------------

    def _observe(self) -> FloatImage:
        state, image = self._state, self.contract.image
        x, y, z = state.tcp_position_m
        offset_x, offset_y, offset_z = self._variation.calibration_offset_m
        heights = self.world.heights(image, (x + offset_x, y + offset_y))
        if self.randomisation is not None:
            heights = self.randomisation.disturbed(heights + np.float32(offset_z), self._noise_rng)
        return compose_observation(
            heights,
            (x, y, z),
            state.yaw_rad,
            state.scene.opening,
            state.holding,
            image,
            goal_xy_m=state.scene.goal_xy_m,
        )

    def _info(
        self, outcome: Outcome, executed: NDArray[np.float64], reasons: tuple[Reason, ...]
    ) -> dict[str, Any]:
        return {
            "success": outcome.success,
            "failure": outcome.failure,
            "executed_action": executed.astype(np.float32),
            "clip_reasons": tuple(reason.value for reason in reasons),
            "holding": self._state.holding,
            "blocked": self._state.blocked,
        }

    def _left_workspace(self, state: WorldState) -> bool:
        """Whether the centre of a block is no longer above the workspace."""
        box = self.contract.workspace
        return any(
            not (box.x_min_m <= item.position_m[0] <= box.x_max_m)
            or not (box.y_min_m <= item.position_m[1] <= box.y_max_m)
            for item in state.scene.objects
            if item.kind is ObjectKind.BLOCK
        )


def start_yaw(rng: np.random.Generator) -> float:
    """Uniform over all headings of a gripper that looks the same after half a turn."""
    return float(rng.uniform(-math.pi / 2, math.pi / 2))


__all__ = ["ActionError", "HiddenPropertyEnv", "Outcome", "start_yaw"]


def _scene_rng(seed: int) -> np.random.Generator:
    # A stream of its own: another generator seeded with the same number, such as the coin of an
    # expert, must not repeat the numbers that placed the objects.
    return np.random.default_rng([_SCENE_STREAM, seed])
