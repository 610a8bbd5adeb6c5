# SPDX-License-Identifier: MIT
"""Whole episodes of any gymnasium environment with an array as observation, and packed batches.

The robot's own `Episode` keeps 16-bit depth images and an expert's labels; this one keeps what the
environment returned. Both go into an `EpisodeReplayBuffer` and share the packed layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equi_rl.data.episode import ReplayError
from equi_rl.data.episode_batch import BatchError, EpisodeLayout


@dataclass(frozen=True, eq=False)
class ArrayEpisode:
    """One episode of T steps. Arrays are not copied; do not write to them."""

    observations: NDArray[np.floating] | NDArray[np.uint8]
    """(T + 1, C) vectors or (T + 1, C, S, S) images."""
    requested_action: NDArray[np.float32]
    """(T, A) in [-1, 1], as the policy asked for them."""
    executed_action: NDArray[np.float32]
    """(T, A) as the environment executed them: `info["executed_action"]`, or as requested."""
    reward: NDArray[np.float32]
    """(T,)."""
    terminated: bool
    """Whether the last step ended the task; a time-out bootstraps."""
    is_demonstration: bool = False

    def __post_init__(self) -> None:
        steps = len(self.reward)
        if steps == 0:
            raise ReplayError("an episode without a step cannot be stored")
        lengths = {
            "observations": (len(self.observations), steps + 1),
            "requested_action": (len(self.requested_action), steps),
            "executed_action": (len(self.executed_action), steps),
        }
        for name, (found, wanted) in lengths.items():
            if found != wanted:
                raise ReplayError(
                    f"episode.{name} has {found} rows; for {steps} steps it must have {wanted}"
                )
        for name in ("observations", "requested_action", "executed_action", "reward"):
            if not np.isfinite(getattr(self, name)).all():
                raise ReplayError(f"episode.{name} holds a value that is not finite")

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def n_bytes(self) -> int:
        """Memory taken by the arrays."""
        arrays = (self.observations, self.requested_action, self.executed_action, self.reward)
        return sum(array.nbytes for array in arrays)

    def window(self, start: int, steps: int) -> ArrayEpisode:
        """Steps ``start`` to ``start + steps`` as an episode of its own, with an empty memory."""
        end = min(start + steps, len(self))
        return ArrayEpisode(
            self.observations[start : end + 1],
            self.requested_action[start:end],
            self.executed_action[start:end],
            self.reward[start:end],
            self.terminated and end == len(self),
            self.is_demonstration,
        )


@dataclass(frozen=True)
class ArrayBatch:
    """Packed episodes; see EpisodeLayout for the order of frames (F) and transitions (D).

    Attributes:
        layout: which frame and transition belongs where.
        observations: (F, C) or (F, C, S, S).
        requested_actions: (D, A) the critic's input.
        executed_actions: (D, A) the memory's previous action.
        rewards: (D,).
        terminated: (D,) 1 where the episode truly ended; a time-out is 0 and bootstraps.
        copy_group, is_demonstration: as in `EpisodeBatch`; never set here.
    """

    layout: EpisodeLayout
    observations: Tensor
    requested_actions: Tensor
    executed_actions: Tensor
    rewards: Tensor
    terminated: Tensor
    copy_group: Tensor | None = None
    is_demonstration: Tensor | None = None


def pack_arrays(episodes: Sequence[ArrayEpisode]) -> ArrayBatch:
    """Episodes of different length as one batch, without padding."""
    if len({episode.observations.shape[1:] for episode in episodes}) != 1:
        raise BatchError("episodes with observations of different shapes cannot be packed together")
    layout = EpisodeLayout.of_lengths([len(episode) for episode in episodes])
    steps = np.array([len(episode) for episode in episodes])
    frame_start = np.concatenate([[0], np.cumsum(steps + 1)])[:-1]
    step_start = np.concatenate([[0], np.cumsum(steps)])[:-1]
    frames = frame_start[layout.frame_episode.numpy()] + layout.frame_time.numpy()
    rows = step_start[layout.step_episode.numpy()] + layout.step_time.numpy()
    ended = np.zeros(int(steps.sum()), dtype=np.float32)
    ended[step_start + steps - 1] = [float(episode.terminated) for episode in episodes]

    def packed(name: str, order: NDArray[np.int64]) -> Tensor:
        joined = np.concatenate([getattr(episode, name) for episode in episodes])
        return torch.from_numpy(np.ascontiguousarray(joined[order], dtype=np.float32))

    return ArrayBatch(
        layout,
        packed("observations", frames),
        packed("requested_action", rows),
        packed("executed_action", rows),
        packed("reward", rows),
        torch.from_numpy(ended[rows]),
    )
