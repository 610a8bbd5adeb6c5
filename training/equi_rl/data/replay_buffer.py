# SPDX-License-Identifier: MIT
"""Replay buffer of whole episodes, with demonstrations that are never evicted.

100,000 transitions of 84 x 84 images fit in under 2 GiB (see `episode`). With a folder, every
episode is also written to disk as it arrives; a killed run reads them back and continues with the
same buffer. Files of evicted episodes stay until whoever calls `take_evicted` deletes them, because
the latest checkpoint may still need them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypeVar

from equi_core.files.array_file import read_arrays
from equi_rl.data.array_episode import ArrayEpisode
from equi_rl.data.atomic_file import atomic_file
from equi_rl.data.episode import Episode, ReplayError

EPISODE_FORMAT = 2
"""Of a stored episode. Format 1 had no mark and held the executed action only."""
_FILE_PATTERN = "episode_*.npz"
_PRIVILEGED = ("privileged_state", "privileged_frame_rad")
StoredEpisode = TypeVar("StoredEpisode", Episode, ArrayEpisode, default=Episode)


class EpisodeReplayBuffer(Generic[StoredEpisode]):
    """Demonstrations for ever, other episodes first in, first out.

    Args:
        capacity: most transitions held; demonstrations count but are never dropped.
        folder: where episodes of the robot's tasks are kept on disk as well; None keeps them in
            memory only.
    """

    def __init__(self, capacity: int = 100_000, folder: Path | None = None) -> None:
        if capacity < 1:
            raise ReplayError(f"capacity is {capacity}; it must be at least 1 transition")
        self.capacity = capacity
        self._folder = folder
        self._demonstrations: list[StoredEpisode] = []
        self._others: list[StoredEpisode] = []
        self._files_of_others: list[Path | None] = []
        self._evicted_files: list[Path] = []
        self._n_transitions = 0
        self._n_added = 0
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def add(self, episode: StoredEpisode) -> None:
        """Store an episode, dropping the oldest ones that are no demonstrations if needed."""
        steps_kept = sum(len(demonstration) for demonstration in self._demonstrations)
        if steps_kept + len(episode) > self.capacity:
            raise ReplayError(
                f"{steps_kept} steps of demonstrations and this episode's {len(episode)} exceed "
                f"the capacity of {self.capacity} transitions; raise the capacity"
            )
        path = self._write(episode)
        self._n_added += 1
        self._insert(episode, path)

    def restore(self, n_added: int) -> None:
        """Read back the first `n_added` episodes that an earlier run wrote to the folder.

        Episodes written after the checkpoint that calls this are deleted, so that the continued
        run writes its own. What was evicted before the checkpoint is evicted again.
        """
        if self._folder is None or self._n_added:
            raise ReplayError("restore needs an empty buffer with a folder")
        for path in sorted(self._folder.glob(_FILE_PATTERN)):
            if _index(path) >= n_added:
                path.unlink()
                continue
            # A folder is given for episodes of the robot's tasks only.
            self._insert(read_episode(path), path)  # type: ignore[arg-type]
        self._n_added = n_added

    def take_evicted(self) -> list[Path]:
        """Files of the episodes evicted since the last call.

        Delete them when a checkpoint of this very buffer is in place; a run that is killed before
        goes on from an older one, whose buffer still holds them.
        """
        evicted, self._evicted_files = self._evicted_files, []
        return evicted

    @property
    def n_added(self) -> int:
        """Episodes ever added: what a checkpoint stores."""
        return self._n_added

    @property
    def n_transitions(self) -> int:
        """Transitions held now."""
        return self._n_transitions

    @property
    def n_bytes(self) -> int:
        """Memory taken by the episodes."""
        return sum(episode.n_bytes for episode in self)

    def __len__(self) -> int:
        return len(self._demonstrations) + len(self._others)

    def __iter__(self) -> Iterator[StoredEpisode]:
        yield from self._demonstrations
        yield from self._others

    def sample(
        self,
        n_episodes: int,
        rng: np.random.Generator,
        n_demonstrations: int = 0,
        n_recent: int = 0,
        recent_episodes: int = 0,
    ) -> list[StoredEpisode]:
        """Episodes drawn uniformly with replacement.

        Args:
            n_episodes: how many.
            rng: source of randomness.
            n_demonstrations: how many of them come from the demonstrations alone.
            n_recent: how many come from the newest episodes that are no demonstrations, if there
                are any; the rest is drawn from everything.
            recent_episodes: how many of them are the newest.
        """
        everything = self._demonstrations + self._others
        if not everything:
            raise ReplayError(
                "the replay buffer is empty; add demonstrations or collect episodes first"
            )
        if n_demonstrations and not self._demonstrations:
            raise ReplayError("no demonstration is stored, so none can be drawn")
        chosen = [
            self._demonstrations[i]
            for i in rng.integers(len(self._demonstrations) or 1, size=n_demonstrations)
        ]
        recent = self._others[-recent_episodes:] if n_recent else []
        if recent:
            chosen += [recent[i] for i in rng.integers(len(recent), size=n_recent)]
        rest = rng.integers(len(everything), size=n_episodes - len(chosen))
        return chosen + [everything[i] for i in rest]

    def _insert(self, episode: StoredEpisode, path: Path | None) -> None:
        if episode.is_demonstration:
            self._demonstrations.append(episode)
        else:
            self._others.append(episode)
            self._files_of_others.append(path)
        self._n_transitions += len(episode)
        while self._n_transitions > self.capacity:
            self._n_transitions -= len(self._others.pop(0))
            evicted = self._files_of_others.pop(0)
            if evicted is not None:
                self._evicted_files.append(evicted)

    def _write(self, episode: StoredEpisode) -> Path | None:
        if self._folder is None:
            return None
        if not isinstance(episode, Episode):
            raise ReplayError("a folder keeps episodes of the robot's tasks only; use folder=None")
        path = self._folder / f"episode_{self._n_added:08d}.npz"
        write_episode(path, episode)
        return path


def delete_files(paths: Sequence[Path]) -> None:
    """Delete files that may be gone already."""
    for path in paths:
        path.unlink(missing_ok=True)


def write_episode(path: Path, episode: Episode) -> None:
    """Write one episode; a reader never sees half of it."""
    with atomic_file(path) as stream:
        np.savez_compressed(
            stream,
            depth=episode.depth,
            holding=episode.holding,
            format=np.array(EPISODE_FORMAT),
            requested_action=episode.requested_action,
            executed_action=episode.executed_action,
            reward=episode.reward,
            expert_action=episode.expert_action,
            flags=np.array([episode.terminated, episode.is_demonstration]),
            **_privileged(episode),
        )


def stored_episodes(folder: Path, n_added: int) -> Iterator[Episode]:
    """The episodes among the first `n_added` that a run has kept in a folder, which stays as is."""
    for path in sorted(folder.glob(_FILE_PATTERN)):
        if _index(path) < n_added:
            yield read_episode(path)


def _privileged(episode: Episode) -> dict[str, NDArray[Any]]:
    found = {name: getattr(episode, name) for name in _PRIVILEGED}
    return {name: array for name, array in found.items() if array is not None}


def _index(path: Path) -> int:
    return int(path.stem.split("_")[1])


def read_episode(path: Path) -> Episode:
    """What `write_episode` wrote; raises ReplayError."""
    try:
        data = read_arrays(path)
        requested, executed = _actions(path, data)
        return Episode(
            depth=data["depth"],
            holding=data["holding"],
            requested_action=requested,
            executed_action=executed,
            reward=data["reward"],
            expert_action=data["expert_action"],
            terminated=bool(data["flags"][0]),
            is_demonstration=bool(data["flags"][1]),
            **{name: data[name] for name in _PRIVILEGED if name in data},
        )
    except ReplayError:
        raise
    except (LookupError, TypeError, ValueError) as error:  # ArrayFileError is a ValueError
        raise ReplayError(f"{path} is not a stored episode: {error}") from error


def _actions(path: Path, data: Mapping[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Requested and executed actions (T, 5)."""
    found = int(data["format"]) if "format" in data else 1
    if found == EPISODE_FORMAT:
        return data["requested_action"], data["executed_action"]
    is_demonstration = bool(data["flags"][1])
    if found == 1 and is_demonstration:  # experts stay inside the workspace: nothing was clipped
        return data["action"], data["action"]
    raise ReplayError(
        f"{path} has episode format {found}; this code reads {EPISODE_FORMAT}, which holds the"
        " requested action beside the executed one; collect the episodes again in a new run"
    )
