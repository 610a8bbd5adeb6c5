# SPDX-License-Identifier: MIT
"""Two small worlds in which one observation is not enough, for recurrent SAC.

`equi/MaskedPendulum-v0`: gymnasium's Pendulum without its angular velocity, which two observations
in a row reveal. `equi/ContinuousCarFlag-v0`: a car on a line with a flag at each end; which of them
is the goal is shown in the middle only, long before the car gets there.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from equi_rl.recurrent_sac.config import Symmetry

MIRRORED_PENDULUM = Symmetry("flip", observation="trivial:1,sign:1", action="sign:1")
"""The mirror image of a swing is a swing: angle, velocity and torque change sign."""
MIRRORED_CARFLAG = Symmetry("flip", observation="sign:2", action="sign:1")
"""The mirror image of the line: position, shown side and motion change sign."""


def masked_pendulum(
    render_mode: str | None = None,
) -> gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]:
    """Pendulum-v1 that shows (cos, sin) of the angle only; 200 steps an episode."""
    env = gymnasium.make("Pendulum-v1", render_mode=render_mode)
    space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    return gymnasium.wrappers.TransformObservation(env, lambda seen: seen[:2], space)


class ContinuousCarFlag(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """A car on the line from -1 to 1. Reward 1 at the goal's flag, -1 at the other, -0.01 a step.

    An observation is (position, side of the goal): the side is -1 or 1 within `SHOWN_WITHIN` of the
    middle and 0 elsewhere. `reset(options={"position": .., "goal_side": ..})` fixes the start.
    """

    SHOWN_WITHIN = 0.2
    STEP_LENGTH = 0.2
    """Way per step at full action."""
    STEP_LIMIT = 50
    START_RANGE = (0.3, 0.7)
    """Distance from the middle at which an episode starts, on either side."""

    metadata: dict[str, Any] = {"render_modes": [], "render_fps": 8}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.position, self.goal_side, self.steps = 0.0, 1, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start off the middle with a random goal."""
        super().reset(seed=seed)
        options = options or {}
        start = float(self.np_random.uniform(*self.START_RANGE) * self.np_random.choice((-1, 1)))
        self.position = float(options.get("position", start))
        self.goal_side = int(options.get("goal_side", self.np_random.choice((-1, 1))))
        self.steps = 0
        return self._observe(), {"success": False}

    def step(
        self, action: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Move; the episode ends at either flag, and is cut off after 50 steps."""
        push = float(np.clip(np.asarray(action, dtype=np.float64).reshape(-1)[0], -1.0, 1.0))
        self.position = float(np.clip(self.position + self.STEP_LENGTH * push, -1.0, 1.0))
        self.steps += 1
        at_flag = abs(self.position) >= 1.0
        success = at_flag and self.position * self.goal_side > 0
        reward = (1.0 if success else -1.0) if at_flag else -0.01
        truncated = not at_flag and self.steps >= self.STEP_LIMIT
        return self._observe(), reward, at_flag, truncated, {"success": success}

    def _observe(self) -> NDArray[np.float32]:
        shown = self.goal_side if abs(self.position) <= self.SHOWN_WITHIN else 0
        return np.array([self.position, shown], dtype=np.float32)
