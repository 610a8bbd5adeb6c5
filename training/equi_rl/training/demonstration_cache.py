# SPDX-License-Identifier: MIT
"""Demonstrations that were played before, by task, seed and code: a sweep plays them once.

An expert's episode is a function of its seed, of the settings of the players, and of the code that
plays it. The cache is a folder of stored episodes named by a hash of all that; it can be deleted at
any time. `EQUI_CACHE` moves it, and an empty value switches it off.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from equi_rl.data.atomic_file import NotWrittenError
from equi_rl.data.episode import Episode, ReplayError
from equi_rl.data.replay_buffer import read_episode, write_episode
from equi_rl.envs import SHIPPED_TASKS
from equi_rl.training.collector import (
    Collector,
    CollectorConfig,
    Demonstrate,
    seeds_from,
)

_FOLDERS = ("equi_core", "equi_rl.sim", "equi_rl.envs", "equi_rl.experts", "equi_rl.data")
_MODULES = ("equi_rl.training.rollout", "equi_rl.training.collector")
_AT_A_TIME = 16
_LIBRARIES = ("numpy", "pybullet", "numba", "scipy")


class DemonstrationCache:
    """Plays demonstrations with a collector, or reads those of the same settings and code."""

    def __init__(self, config: CollectorConfig, folder: Path | None = None) -> None:
        folder = folder or default_folder()
        key = hashlib.sha256(f"{config!r} {code_digest()}".encode()).hexdigest()[:24]
        # The key covers the code of this package, so episodes of a plug-in's task are not kept.
        if folder is not None and config.task in SHIPPED_TASKS:
            self._folder: Path | None = folder / "demonstrations" / config.task / key
        else:
            self._folder = None
        self.n_read = 0
        """Episodes that did not have to be played."""

    def play(self, collector: Collector, seeds: tuple[int, ...]) -> list[tuple[Episode, bool]]:
        """Episode and success for every seed, in their order."""
        known = {
            seed: (episode, episode.succeeded)
            for seed in seeds
            if (episode := self._read(seed)) is not None
        }
        self.n_read += len(known)
        missing = tuple(seed for seed in seeds if seed not in known)
        if missing:
            played = collector.play(Demonstrate(missing))
            for seed, (episode, outcome) in zip(missing, played, strict=True):
                known[seed] = episode, outcome.success
                if episode.succeeded == outcome.success:  # what will be read says the same
                    self._write(seed, episode)
        return [known[seed] for seed in seeds]

    def successes(self, collector: Collector, first_seed: int, count: int) -> Iterator[Episode]:
        """So many successful episodes, in the order of their seeds from the first on."""
        seed = first_seed
        while count:
            # A few at a time, so that whoever waits sees how far it is.
            asked = seeds_from(seed, min(count, _AT_A_TIME))
            seed += len(asked)
            for episode, success in self.play(collector, asked):
                if success:
                    count -= 1
                    yield episode

    def _read(self, seed: int) -> Episode | None:
        path = self._path(seed)
        if path is None or not path.exists():
            return None
        try:
            return read_episode(path)
        except ReplayError:  # cut short by a full disk: play it again
            return None

    def _write(self, seed: int, episode: Episode) -> None:
        path = self._path(seed)
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_episode(path, episode)
        except (NotWrittenError, OSError):
            return  # a cache is no reason to stop

    def _path(self, seed: int) -> Path | None:
        return None if self._folder is None else self._folder / f"episode_{seed:08d}.npz"


def default_folder() -> Path | None:
    """Where the cache is: `EQUI_CACHE`, or equi_rl below the user's cache folder."""
    chosen = os.environ.get("EQUI_CACHE")
    if chosen is not None:
        return Path(chosen) if chosen else None
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "equi_rl"


@lru_cache(maxsize=1)
def code_digest() -> str:
    """SHA-256 of all code that an expert's episode depends on, and of the libraries' versions."""
    total = hashlib.sha256()
    for name in _FOLDERS:
        spec = find_spec(name)
        assert spec is not None
        for folder in spec.submodule_search_locations or ():
            for path in sorted(Path(folder).rglob("*.py")):
                total.update(path.read_bytes())
    for name in _MODULES:
        spec = find_spec(name)
        assert spec is not None
        total.update(Path(spec.origin or "").read_bytes())
    for library in _LIBRARIES:
        total.update(f"{library} {version(library)}".encode())
    return total.hexdigest()
