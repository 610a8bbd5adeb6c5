# SPDX-License-Identifier: MIT
"""The replay buffer as a critic of states sees it: states, actions and rewards, no images.

A critic that is trained on the very episodes whose actions it then weighs gives credit for luck:
it has just been told how these episodes ended. So it draws batches of its own here, which cost
little because nothing is encoded.

A target needs what the policy would do in a state, and to know that takes images. It is remembered
from the last time the actor was trained on the episode; until then it is the action that was
requested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equi_rl.agents.state_critic import rotate_horizontally
from equi_rl.data.collate import packed_rows
from equi_rl.data.device import HOST
from equi_rl.data.episode import Episode
from equi_rl.data.episode_batch import BatchError, EpisodeLayout
from equi_rl.data.replay_buffer import EpisodeReplayBuffer


class StateBatch(NamedTuple):
    """Packed whole episodes of D transitions; actions are given in the frame of their state."""

    layout: EpisodeLayout
    states: Tensor
    """(D, S) state in which each transition was decided."""
    actions: Tensor
    """(D, 5) what was requested."""
    policy_actions: Tensor
    """(D, 5) what the policy would request, as last known."""
    rewards: Tensor
    """(D,)."""

    def to(self, device: torch.device) -> StateBatch:
        """The batch on a device."""
        return StateBatch(self.layout.to(device), *(part.to(device) for part in self[1:]))


class StateReplay:
    """Draws batches for the critic from a replay buffer; remembers the policy's actions in it."""

    def __init__(self, replay_buffer: EpisodeReplayBuffer) -> None:
        self._replay_buffer = replay_buffer
        self._policy_actions: WeakKeyDictionary[Episode, Tensor] = WeakKeyDictionary()

    def sample(
        self, n_episodes: int, n_demonstrations: int, n_recent: int, recent_episodes: int
    ) -> StateBatch:
        """See `EpisodeReplayBuffer.sample`; the draws come from torch's global generator."""
        rng = np.random.default_rng(int(torch.randint(2**62, ())))
        return self.batch(
            self._replay_buffer.sample(n_episodes, rng, n_demonstrations, n_recent, recent_episodes)
        )

    def batch(self, episodes: Sequence[Episode]) -> StateBatch:
        """These episodes, packed."""
        lengths = [len(episode) for episode in episodes]
        layout = EpisodeLayout.of_lengths(lengths)
        rows = packed_rows(lengths, layout.step_episode, layout.step_time)
        return StateBatch(
            layout,
            torch.cat([_states(episode) for episode in episodes])[rows],
            torch.cat([_requested(episode) for episode in episodes])[rows],
            torch.cat([self._policy_action(episode) for episode in episodes])[rows],
            torch.cat([torch.from_numpy(episode.reward) for episode in episodes])[rows],
        )

    def remember(self, episodes: Sequence[Episode], layout: EpisodeLayout, actions: Tensor) -> None:
        """What the policy would do (D, 5), in the frames of the states, in packed episodes."""
        lengths = [len(episode) for episode in episodes]
        rows = packed_rows(lengths, layout.step_episode.cpu(), layout.step_time.cpu())
        unpacked = torch.empty_like(actions, device=HOST)
        unpacked[rows] = actions.to(HOST)
        for episode, own in zip(episodes, unpacked.split(lengths), strict=True):
            self._policy_actions[episode] = own.clone()

    def tensor(self) -> Tensor:
        """What is remembered of all episodes (N, 5), for a checkpoint."""
        return torch.cat(
            [
                torch.empty(0, 5, device=HOST),
                *(self._policy_action(episode) for episode in self._replay_buffer),
            ]
        )

    def restore(self, remembered: Tensor) -> None:
        """Take over what a checkpoint of the same buffer held."""
        episodes = list(self._replay_buffer)
        for episode, own in zip(
            episodes, remembered.split([len(episode) for episode in episodes]), strict=True
        ):
            self._policy_actions[episode] = own.clone()

    def _policy_action(self, episode: Episode) -> Tensor:
        known = self._policy_actions.get(episode)
        return _requested(episode) if known is None else known


def _recorded(array: NDArray[np.float32] | None) -> NDArray[np.float32]:
    if array is None:
        raise BatchError(
            "episode.privileged_state is None; an asymmetric critic needs episodes that were"
            " recorded with the simulator's state; collect them again in a new run"
        )
    return array


def _states(episode: Episode) -> Tensor:
    return torch.from_numpy(_recorded(episode.privileged_state)[:-1])


def _requested(episode: Episode) -> Tensor:
    frame_rad = torch.from_numpy(_recorded(episode.privileged_frame_rad)[:-1])
    return rotate_horizontally(torch.from_numpy(episode.requested_action), -frame_rad)
