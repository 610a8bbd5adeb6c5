# SPDX-License-Identifier: MIT
"""Features of whole episodes by a frozen encoder, computed once: updates without convolutions.

An episode is encoded when it is first sampled, as it is and rotated by some angles; a batch then
takes one of these copies of each of its episodes. Features are dropped with their episode. The
angles follow from the episode alone, so a resumed run computes the same features. Quarter turns
would be of no use to an equivariant agent: its losses do not change under them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from equi_rl.data.collate import LabelledBatch, pack_episodes, packed_rows, random_angle_rad
from equi_rl.data.episode import DEPTH_STEP_M, Episode
from equi_rl.data.episode_batch import EpisodeLayout
from equi_rl.data.image_kernels import rotate_into
from equi_rl.nets import dense
from equi_rl.nets.networks import Actor


class EncodedCopy(NamedTuple):
    """Features (T + 1, C) of an episode that was rotated by an angle [rad]."""

    angle_rad: float
    features: Tensor


class FeatureCache:
    """Encodes episodes with an actor's image encoder as it is now.

    Args:
        actor: its encoder must not change any more.
        rotations: rotated copies of an episode, beside the episode itself.
        fit_square: see `Augmentation`.
    """

    def __init__(self, actor: Actor, rotations: int, fit_square: bool = False) -> None:
        self._config = actor.config
        self._rotations, self._fit_square = rotations, fit_square
        with torch.no_grad():
            self._layers = dense.map_tensors(actor.dense().history.encoder, torch.clone)
        self._copies: WeakKeyDictionary[Episode, list[EncodedCopy]] = WeakKeyDictionary()

    def collate(self, episodes: Sequence[Episode], rng: np.random.Generator) -> LabelledBatch:
        """Pack episodes, each in one of its copies."""
        copies = [self.copies(episode) for episode in episodes]
        chosen = [some[rng.integers(len(some))] for some in copies]
        layout = EpisodeLayout.of_lengths([len(episode) for episode in episodes])
        frames = [len(episode) + 1 for episode in episodes]
        rows = packed_rows(frames, layout.frame_episode, layout.frame_time)
        return pack_episodes(
            episodes,
            [copy.angle_rad for copy in chosen],
            layout,
            features=torch.cat([copy.features for copy in chosen])[rows],
        )

    def copies(self, episode: Episode) -> list[EncodedCopy]:
        """The episode's features, as it is and rotated."""
        if episode not in self._copies:
            self._copies[episode] = self._encode(episode)
        return self._copies[episode]

    def _encode(self, episode: Episode) -> list[EncodedCopy]:
        rng = np.random.default_rng(zlib.crc32(episode.executed_action.tobytes()))
        drawn = (random_angle_rad(episode, rng, self._fit_square) for _ in range(self._rotations))
        angles = [0.0, *drawn]
        frames, size = len(episode.depth), self._config.observation_size
        depth = np.empty((len(angles) * frames, size, size), dtype=np.float32)
        for number, angle in enumerate(angles):
            rows = np.arange(number * frames, (number + 1) * frames)
            rotate_into(depth, rows, episode.depth, angle, DEPTH_STEP_M)
        holding = torch.from_numpy(np.tile(episode.holding, len(angles)))
        images = dense.prepare_depth(self._config, torch.from_numpy(depth), holding)
        with torch.no_grad():
            features = dense.encode(
                self._config, self._layers, images, dtype=dense.convolution_dtype()
            )
        return [
            EncodedCopy(angle, part)
            for angle, part in zip(angles, features.split(frames), strict=True)
        ]
