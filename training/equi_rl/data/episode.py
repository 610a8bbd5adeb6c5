# SPDX-License-Identifier: MIT
"""One whole episode, compact: a frame costs one 16-bit depth image and one flag.

Observation t and observation t + 1 share storage: an episode of T steps holds T + 1 frames.
`terminated` (the task ended, no future) and `truncated` (time ran out, the future is merely unseen)
are kept apart, because only the first one stops bootstrapping.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equi_core.contract import ACTION_ORDER

DEPTH_STEP_M = 1e-5
"""Resolution of a stored depth [m]: 10 micrometres, so 16 bits reach 0.655 m."""
_MAX_DEPTH_M = DEPTH_STEP_M * np.iinfo(np.uint16).max


_CLIPPED_ABOVE = 1e-3
"""Of a policy's unit; what is smaller is rounding."""


class ReplayError(ValueError):
    """An episode or request that the replay buffer cannot take; says what is wrong with it."""


@dataclass(frozen=True, eq=False)
class Episode:
    """One whole episode of T steps. Arrays are not copied; do not write to them."""

    depth: NDArray[np.uint16]
    """Depth planes (T + 1, S, S) in units of DEPTH_STEP_M."""
    holding: NDArray[np.bool_]
    """Holding flag (T + 1,)."""
    requested_action: NDArray[np.float32]
    """Policy vectors (T, 5) as the policy asked for them: what the critic learns about."""
    executed_action: NDArray[np.float32]
    """The same after the environment clipped them to the workspace (T, 5): what the recurrent
    networks are told about the step before."""
    reward: NDArray[np.float32]
    """Rewards (T,)."""
    terminated: bool
    """Whether the last step ended the task (success or failure)."""
    expert_action: NDArray[np.float32]
    """What the expert would have done at each step (T, 5), or any other action to imitate; NaN
    rows where there is none."""
    is_demonstration: bool = False
    privileged_state: NDArray[np.float32] | None = None
    """Numbers (T + 1, S) of the simulator's state at each frame, for a critic in training; None
    where they were not recorded."""
    privileged_frame_rad: NDArray[np.float32] | None = None
    """Angle (T + 1,) of the frame that they are given in."""

    def __post_init__(self) -> None:
        steps = len(self.executed_action)
        size = self.depth.shape[-1] if self.depth.ndim == 3 else -1
        wanted = {
            "depth": (steps + 1, size, size),
            "holding": (steps + 1,),
            "requested_action": (steps, len(ACTION_ORDER)),
            "executed_action": (steps, len(ACTION_ORDER)),
            "reward": (steps,),
            "expert_action": (steps, len(ACTION_ORDER)),
        }
        if self.privileged_state is not None:
            wanted["privileged_state"] = (steps + 1, self.privileged_state.shape[-1])
            wanted["privileged_frame_rad"] = (steps + 1,)
        if steps == 0:
            raise ReplayError("an episode without a step cannot be stored")
        for name, shape in wanted.items():
            found = np.shape(getattr(self, name))
            if found != shape:
                raise ReplayError(
                    f"episode.{name} has shape {found}; for {steps} steps it must be {shape}"
                )
        numbers = ["requested_action", "executed_action", "reward"]
        if self.privileged_state is not None:
            numbers += ["privileged_state", "privileged_frame_rad"]
        for name in numbers:
            if not np.all(np.isfinite(getattr(self, name))):
                raise ReplayError(f"episode.{name} holds a value that is not finite")

    def __len__(self) -> int:
        return len(self.executed_action)

    @property
    def succeeded(self) -> bool:
        """Whether the task's reward was earned."""
        return self.terminated and bool(self.reward[-1] > 0)

    @property
    def is_clipped(self) -> NDArray[np.bool_]:
        """(T,) whether the workspace clipped what was requested."""
        clipped: NDArray[np.bool_] = (
            np.abs(self.requested_action - self.executed_action).max(axis=1) > _CLIPPED_ABOVE
        )
        return clipped

    @property
    def n_bytes(self) -> int:
        """Memory taken by the arrays."""
        arrays = (getattr(self, field.name) for field in dataclasses.fields(self))
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def pack_depth(depth_m: NDArray[np.floating]) -> NDArray[np.uint16]:
    """Depths [m] as stored 16-bit steps; out of range is clipped."""
    return np.round(np.clip(depth_m, 0.0, _MAX_DEPTH_M) / DEPTH_STEP_M).astype(np.uint16)


def unpack_depth(depth: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Stored 16-bit steps as depths [m]."""
    return depth.astype(np.float32) * np.float32(DEPTH_STEP_M)


class EpisodeRecorder:
    """Collects one episode step by step; `finish` returns it."""

    def __init__(self, first_observation: NDArray[np.float32]) -> None:
        self._depth = [pack_depth(first_observation[0])]
        self._holding = [bool(first_observation[1, 0, 0] > 0.5)]
        self._requested: list[NDArray[np.float32]] = []
        self._executed: list[NDArray[np.float32]] = []
        self._expert_actions: list[NDArray[np.float32]] = []
        self._rewards: list[float] = []
        self._privileged: list[tuple[NDArray[np.float32], float]] = []

    @property
    def n_steps(self) -> int:
        """Steps recorded so far."""
        return len(self._executed)

    def add(
        self,
        requested_action: NDArray[np.floating],
        executed_action: NDArray[np.floating],
        reward: float,
        next_observation: NDArray[np.float32],
        expert_action: NDArray[np.floating] | None = None,
    ) -> None:
        """Append one step: its action, as requested and as executed, reward, next observation."""
        self._requested.append(np.asarray(requested_action, dtype=np.float32))
        self._executed.append(np.asarray(executed_action, dtype=np.float32))
        unknown = np.full(len(ACTION_ORDER), np.nan, dtype=np.float32)
        label = unknown if expert_action is None else np.asarray(expert_action, dtype=np.float32)
        self._expert_actions.append(label)
        self._rewards.append(float(reward))
        self._depth.append(pack_depth(next_observation[0]))
        self._holding.append(bool(next_observation[1, 0, 0] > 0.5))

    def add_privileged(self, values: NDArray[np.float32], frame_rad: float) -> None:
        """Append the simulator's state at the newest frame, in a frame at an angle."""
        self._privileged.append((values, frame_rad))

    def finish(self, terminated: bool, is_demonstration: bool = False) -> Episode:
        """The recorded episode."""
        values, angles = zip(*self._privileged, strict=True) if self._privileged else (None, None)
        return Episode(
            depth=np.stack(self._depth),
            holding=np.array(self._holding),
            requested_action=_rows(self._requested),
            executed_action=_rows(self._executed),
            reward=np.array(self._rewards, dtype=np.float32),
            terminated=bool(terminated),
            expert_action=_rows(self._expert_actions),
            is_demonstration=is_demonstration,
            privileged_state=None if values is None else np.stack(values),
            privileged_frame_rad=None if angles is None else np.array(angles, dtype=np.float32),
        )


def _rows(actions: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    return np.array(actions, dtype=np.float32).reshape(-1, len(ACTION_ORDER))
