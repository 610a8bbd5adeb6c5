# SPDX-License-Identifier: MIT
"""The evaluation protocol: which episode comes next, and which ones count.

Half of the counted episodes are those in which the policy happened to try the movable object first,
half those in which it tried the immovable one: only the second kind shows whether it remembers. The
kind is known afterwards, so an episode of a kind whose half is full is recorded, but not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from equi_evaluation.results import EpisodeResult


class FirstTry(str, Enum):
    """Which object was tried first."""

    MOVABLE = "movable"
    IMMOVABLE = "immovable"
    NONE = "none"
    """Neither was reached."""


class ProtocolError(ValueError):
    """Settings that no evaluation can follow."""


@dataclass(frozen=True)
class Protocol:
    """Seeded scenes in order, until enough episodes count."""

    episodes: int
    """Number of episodes that count."""
    seed: int = 0
    """Seed of the first scene; the following scenes count upwards."""
    balanced: bool = True
    """Half movable-first, half immovable-first."""
    most_attempts_per_episode: int = 4
    """Give up after this many times `episodes` attempts."""

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise ProtocolError(f"episodes is {self.episodes}; it must be at least 1")
        if self.seed < 0:
            raise ProtocolError(f"seed is {self.seed}; it must not be negative")

    def counted(self, results: Sequence[EpisodeResult]) -> list[EpisodeResult]:
        """The results that count, in order."""
        taken: list[EpisodeResult] = []
        room = self._quotas()
        for result in results:
            if result.invalid or len(taken) == self.episodes:
                continue
            kind = FirstTry(result.first_try)
            if not self.balanced:
                taken.append(result)
                continue
            if kind is FirstTry.NONE:
                # Nothing was tried: a failure of whichever kind still has more room.
                kind = max((FirstTry.MOVABLE, FirstTry.IMMOVABLE), key=room.__getitem__)
            if room[kind] > 0:
                room[kind] -= 1
                taken.append(result)
        return taken

    def next_seed(self, results: Sequence[EpisodeResult]) -> int | None:
        """Seed of the next scene; None when the evaluation is complete or given up."""
        if len(self.counted(results)) >= self.episodes:
            return None
        if len(results) >= self.most_attempts_per_episode * self.episodes:
            return None
        return self.seed + len(results)

    def _quotas(self) -> dict[FirstTry, int]:
        return {
            FirstTry.MOVABLE: (self.episodes + 1) // 2,
            FirstTry.IMMOVABLE: self.episodes // 2,
        }
