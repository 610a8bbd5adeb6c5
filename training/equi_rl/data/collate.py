# SPDX-License-Identifier: MIT
"""A batch of whole episodes, augmented and packed, ready for the networks.

Only real frames are unpacked, rotated and encoded; nothing is padded. Each episode gets its own
random transformation, drawn anew every time it is sampled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from equi_rl.data import augmentation as augment
from equi_rl.data.device import HOST
from equi_rl.data.device_augmentation import host_steps, rotate_frames, unpack
from equi_rl.data.episode import DEPTH_STEP_M, Episode
from equi_rl.data.episode_batch import EpisodeBatch, EpisodeLayout
from equi_rl.data.image_kernels import rotate_into


class PixelAugmentation(str, Enum):
    """What is done to the images of an episode beside rotating it."""

    NONE = "none"
    CROP = "crop"  # RAD: one random window per episode; the environment renders larger images
    SHIFT = "shift"  # DrQ: one random shift per episode


@dataclass(frozen=True)
class Augmentation:
    """Random transformations of whole episodes."""

    rotate: bool = True
    """Rotate world and actions by one angle per episode, drawn from the circle."""
    fit_square: bool = False
    """Draw another angle, at last a quarter turn, where a step would leave the square of actions;
    False lets it leave."""
    pixels: PixelAugmentation = PixelAugmentation.NONE
    shift_px: int = 4
    """Largest shift along either axis."""
    copies: int = 1
    """How often an episode enters the batch, each time with other pixels (DrQ: K = M = copies)."""

    def __post_init__(self) -> None:
        if self.shift_px < 0:
            raise ValueError(f"shift_px is {self.shift_px}; it must be at least 0")
        if self.copies < 1:
            raise ValueError(f"copies is {self.copies}; it must be at least 1")


@dataclass(frozen=True)
class LabelledBatch:
    """Packed episodes, and what the expert would have done in them."""

    episodes: EpisodeBatch
    expert_actions: Tensor
    """(D, 5) the expert's action, NaN where it was not asked."""
    sources: tuple[Episode, ...] = ()
    """The episodes as they are stored, in the layout's numbering."""

    def to(self, device: torch.device) -> LabelledBatch:
        """The batch on a device."""
        moved = self.expert_actions.to(device, non_blocking=True)
        return dataclasses.replace(self, episodes=self.episodes.to(device), expert_actions=moved)


def collate(
    episodes: Sequence[Episode],
    size_px: int,
    rng: np.random.Generator,
    augmentation: Augmentation,
    device: torch.device = HOST,
) -> LabelledBatch:
    """Augment and pack episodes for a network that sees images of `size_px` pixels a side.

    The batch is on `device`; images are rotated there, so that half as many bytes cross to it.
    """
    originals = len(episodes)
    episodes = list(episodes) * augmentation.copies
    layout = EpisodeLayout.of_lengths([len(episode) for episode in episodes])
    angles = [
        random_angle_rad(episode, rng, augmentation.fit_square) if augmentation.rotate else 0.0
        for episode in episodes[:originals]
    ] * augmentation.copies
    draw = _draw_on_host if device == HOST else _draw_on_device
    batch = pack_episodes(
        episodes,
        angles,
        layout,
        draw(episodes, angles, layout, size_px, rng, augmentation, device),
        copy_group=_copy_groups(layout, originals) if augmentation.copies > 1 else None,
    )
    return batch if device == HOST else batch.to(device)


def pack_episodes(
    episodes: Sequence[Episode],
    angles_rad: Sequence[float],
    layout: EpisodeLayout,
    depth_m: Tensor,
    copy_group: Tensor | None = None,
) -> LabelledBatch:
    """Everything but the images, each episode's actions rotated by its angle.

    Args:
        episodes: B of them.
        angles_rad: one for each.
        layout: of these episodes.
        depth_m: (F, S, S) packed and rotated depth images [m].
        copy_group: see `EpisodeBatch`.
    """
    requested, executed, labels = (
        torch.cat(
            [
                rotate(torch.from_numpy(getattr(episode, name)), angle)
                for episode, angle in zip(episodes, angles_rad, strict=True)
            ]
        )
        for name, rotate in (
            ("requested_action", augment.rotate_actions),
            ("executed_action", augment.rotate_actions),
            ("expert_action", augment.rotate_labels),
        )
    )
    terminated = [np.zeros(len(episode), dtype=np.float32) for episode in episodes]
    for episode, row in zip(episodes, terminated, strict=True):
        row[-1] = float(episode.terminated)
    lengths = [len(episode) for episode in episodes]
    frame_rows = packed_rows(np.add(lengths, 1), layout.frame_episode, layout.frame_time)
    step_rows = packed_rows(lengths, layout.step_episode, layout.step_time)
    holding = torch.from_numpy(np.concatenate([episode.holding for episode in episodes]))
    states, frames_rad = _privileged(episodes, angles_rad)
    shown = torch.tensor([episode.is_demonstration for episode in episodes])
    packed = EpisodeBatch(
        layout=layout,
        depth_m=depth_m,
        holding=holding[frame_rows],
        requested_actions=requested[step_rows],
        executed_actions=executed[step_rows],
        rewards=torch.from_numpy(np.concatenate([e.reward for e in episodes]))[step_rows],
        terminated=torch.from_numpy(np.concatenate(terminated))[step_rows],
        copy_group=copy_group,
        is_demonstration=shown[layout.step_episode],
        privileged_state=None if states is None else states[step_rows],
        privileged_frame_rad=None if frames_rad is None else frames_rad[step_rows],
    )
    return LabelledBatch(packed, labels[step_rows], tuple(episodes))


def _privileged(
    episodes: Sequence[Episode], angles_rad: Sequence[float]
) -> tuple[Tensor | None, Tensor | None]:
    """The simulator's states (steps, S) and the angles of their frames, episode by episode."""
    states, frames_rad = [], []
    for episode, angle in zip(episodes, angles_rad, strict=True):
        if episode.privileged_state is None or episode.privileged_frame_rad is None:
            return None, None
        states.append(episode.privileged_state[:-1])
        frames_rad.append(episode.privileged_frame_rad[:-1] + np.float32(angle))
    return torch.from_numpy(np.concatenate(states)), torch.from_numpy(np.concatenate(frames_rad))


def random_angle_rad(episode: Episode, rng: np.random.Generator, fit_square: bool) -> float:
    """An angle [rad] by which the whole episode is rotated."""
    if not fit_square:
        return augment.random_angle_rad(rng)
    return augment.random_fitting_angle_rad(
        rng, episode.requested_action, episode.executed_action, episode.expert_action
    )


def _draw_on_host(
    episodes: Sequence[Episode],
    angles_rad: Sequence[float],
    layout: EpisodeLayout,
    size_px: int,
    rng: np.random.Generator,
    augmentation: Augmentation,
    _: torch.device,
) -> Tensor:
    """Depth images (F, S, S) [m] of all episodes after their transformations."""
    depth = np.empty((layout.n_frames, size_px, size_px), dtype=np.float32)
    for number, (episode, angle) in enumerate(zip(episodes, angles_rad, strict=True)):
        stored = _window(episode.depth, size_px, rng, augmentation)
        rotate_into(depth, _rows_of(layout, number), stored, angle, DEPTH_STEP_M)
    return torch.from_numpy(depth)


def _draw_on_device(
    episodes: Sequence[Episode],
    angles_rad: Sequence[float],
    layout: EpisodeLayout,
    size_px: int,
    rng: np.random.Generator,
    augmentation: Augmentation,
    device: torch.device,
) -> Tensor:
    """As `_draw_on_host`, unpacked and rotated on another device."""
    steps = host_steps(layout.n_frames, size_px, device)
    bits = steps.numpy().view(np.uint16)
    for number, episode in enumerate(episodes):
        stored = _window(episode.depth, size_px, rng, augmentation)
        bits[_rows_of(layout, number)] = stored
    depth_m = unpack(steps, device)
    if not augmentation.rotate:
        return depth_m
    return rotate_frames(depth_m, list(angles_rad), layout.frame_episode.to(device))


def _rows_of(layout: EpisodeLayout, number: int) -> NDArray[np.int64]:
    """Packed frames of an episode, in order of time."""
    rows: NDArray[np.int64] = torch.nonzero(layout.frame_episode == number)[:, 0].numpy()
    return rows


def _window(
    stored: NDArray[np.uint16],
    size_px: int,
    rng: np.random.Generator,
    augmentation: Augmentation,
) -> NDArray[np.uint16]:
    """What the network sees of stored images, before they are rotated."""
    if augmentation.pixels is PixelAugmentation.CROP:
        offset = augment.random_crop_offset_px(rng, stored.shape[-1], size_px)
        return augment.crop(stored, offset, size_px)
    if augmentation.pixels is PixelAugmentation.SHIFT:
        return augment.shift(stored, augment.random_shift_px(rng, augmentation.shift_px))
    return stored


def _copy_groups(layout: EpisodeLayout, originals: int) -> Tensor:
    """(D,) number of each transition before it was copied."""
    longest = len(layout.step_counts)
    return (layout.step_episode % originals) * longest + layout.step_time


def packed_rows(lengths: ArrayLike, episode: Tensor, time: Tensor) -> Tensor:
    """Rows of episode-by-episode concatenated arrays in packed order."""
    starts = torch.from_numpy(np.cumsum(lengths) - lengths)
    return starts[episode] + time
