# SPDX-License-Identifier: MIT
"""Whole episodes of different length as one packed batch: only real frames, no padding.

An episode of T transitions has T + 1 frames. Episodes are ordered from long to short and stored
time step by time step (the layout of ``torch.nn.utils.rnn.PackedSequence``), once for the frames
and once for the transitions, so that encoder, LSTM and losses never see a padded slot.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


class BatchError(ValueError):
    """Episodes that do not make a batch; says which part does not fit."""


@dataclass(frozen=True)
class EpisodeLayout:
    """Where step t of episode i lies in the packed arrays.

    Attributes:
        order: (B,) episode indices from long to short.
        frame_counts: (T_max + 1,) int64: episodes that still have a frame at step t.
        step_counts: (T_max,) int64: episodes that still have a transition at step t.
        frame_of_step: (D,) packed frame in which transition d is decided.
        next_frame_of_step: (D,) packed frame that follows transition d.
        frame_episode, frame_time: (F,) episode (caller's numbering) and step of each packed frame.
        step_episode, step_time: (D,) the same for transitions.
    """

    order: Tensor
    frame_counts: Tensor
    step_counts: Tensor
    frame_of_step: Tensor
    next_frame_of_step: Tensor
    frame_episode: Tensor
    frame_time: Tensor
    step_episode: Tensor
    step_time: Tensor

    @property
    def n_frames(self) -> int:
        """Number F of packed frames."""
        return len(self.frame_episode)

    @property
    def n_steps(self) -> int:
        """Number D of packed transitions."""
        return len(self.step_episode)

    @classmethod
    def of_lengths(cls, lengths: Sequence[int]) -> EpisodeLayout:
        """Layout for episodes of the given numbers of transitions (each at least 1)."""
        steps = np.asarray(lengths, dtype=np.int64)
        if steps.ndim != 1 or len(steps) == 0 or steps.min() < 1:
            raise BatchError(
                f"lengths = {list(lengths)!r}; need at least one episode, each of at least 1 step"
            )
        order = np.argsort(-steps, kind="stable")
        ordered = steps[order]
        step_counts = (ordered[None, :] > np.arange(ordered[0])[:, None]).sum(axis=1)
        frame_counts = np.concatenate([[len(steps)], step_counts])
        step_time = np.repeat(np.arange(len(step_counts)), step_counts)
        frame_time = np.repeat(np.arange(len(frame_counts)), frame_counts)
        step_rank = _rank(step_counts)
        frame_rank = _rank(frame_counts)
        frame_start = np.concatenate([[0], np.cumsum(frame_counts)])
        arrays = (
            order,
            frame_counts,
            step_counts,
            frame_start[step_time] + step_rank,
            frame_start[step_time + 1] + step_rank,
            order[frame_rank],
            frame_time,
            order[step_rank],
            step_time,
        )
        return cls(*(torch.as_tensor(array) for array in arrays))

    def to(self, device: torch.device) -> EpisodeLayout:
        """The layout on a device; the counts stay on the host, where the LSTM wants them."""
        moved = {
            name: getattr(self, name).to(device, non_blocking=True)
            for name in (
                *("order", "frame_of_step", "next_frame_of_step"),
                *("frame_episode", "frame_time", "step_episode", "step_time"),
            )
        }
        return dataclasses.replace(self, **moved)

    @property
    def is_last_step(self) -> Tensor:
        """(D,) whether a transition is the last of its episode."""
        lengths = torch.bincount(self.step_episode)
        return self.step_time == lengths[self.step_episode] - 1

    def previous_actions(self, executed_actions: Tensor) -> Tensor:
        """(F, A) action executed before each frame, zero before the first; from (D, A)."""
        previous = executed_actions.new_zeros(self.n_frames, executed_actions.shape[-1])
        previous[self.next_frame_of_step] = executed_actions
        return previous


@dataclass(frozen=True)
class EpisodeBatch:
    """Packed episodes; see EpisodeLayout for the order of frames (F) and transitions (D).

    Attributes:
        layout: which frame and transition belongs where.
        depth_m: (F, S, S) depth [m], any floating type.
        holding: (F,) holding flag, 0 or 1.
        requested_actions: (D, 5) what the policy asked for, in policy units: the critic's input.
        executed_actions: (D, 5) what was done after clipping: the LSTM's previous action.
        rewards: (D,).
        terminated: (D,) 1 where the episode truly ended; a time-out is 0 and bootstraps.
        copy_group: (D,) equal numbers mark augmented copies of one transition, which share the
            mean of their targets (DrQ); None: no copies.
        is_demonstration: (D,) whether an expert acted; None: nowhere.
        privileged_state: (D, S) the simulator's state in which each transition was decided; None
            where it was not recorded.
        privileged_frame_rad: (D,) angle of the frame that it is given in, rotation of the episode
            included.
    """

    layout: EpisodeLayout
    depth_m: Tensor
    holding: Tensor
    requested_actions: Tensor
    executed_actions: Tensor
    rewards: Tensor
    terminated: Tensor
    copy_group: Tensor | None = None
    is_demonstration: Tensor | None = None
    privileged_state: Tensor | None = None
    privileged_frame_rad: Tensor | None = None

    def __post_init__(self) -> None:
        frames, steps = self.layout.n_frames, self.layout.n_steps
        for name, wanted in (
            ("depth_m", frames),
            ("holding", frames),
            ("requested_actions", steps),
            ("executed_actions", steps),
            ("rewards", steps),
            ("terminated", steps),
            ("is_demonstration", steps),
            ("privileged_state", steps),
            ("privileged_frame_rad", steps),
        ):
            rows = getattr(self, name)
            if rows is not None and len(rows) != wanted:
                raise BatchError(f"batch.{name} has {len(rows)} rows; the layout has {wanted}")

    def to(self, device: torch.device) -> EpisodeBatch:
        """The batch on a device; what comes from pinned memory is copied while others compute."""
        moved = {
            field.name: value.to(device, non_blocking=True)
            for field in dataclasses.fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        return dataclasses.replace(self, layout=self.layout.to(device), **moved)


def random_batch(
    size_px: int, lengths: Sequence[int], generator: torch.Generator | None = None
) -> EpisodeBatch:
    """Random images, actions and rewards, to measure an update without an environment."""
    layout = EpisodeLayout.of_lengths(lengths)
    frames, steps = layout.n_frames, layout.n_steps
    last = layout.step_time == torch.as_tensor(lengths)[layout.step_episode] - 1
    depth_m = torch.rand(frames, size_px, size_px, generator=generator) * 0.3
    holding = (torch.rand(frames, generator=generator) > 0.5).float()
    requested = torch.rand(steps, 5, generator=generator) * 2.0 - 1.0
    return EpisodeBatch(
        layout,
        depth_m,
        holding,
        requested,
        # Clipped, as a workspace would do; some of them differ.
        requested.clamp(-0.9, 0.9),
        last.float(),
        last.float(),
    )


def _rank(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([np.arange(count) for count in counts])
