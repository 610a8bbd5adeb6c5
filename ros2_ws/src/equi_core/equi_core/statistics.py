# SPDX-License-Identifier: MIT
"""Success rates with honest intervals: what a count of successes does and does not show."""

from __future__ import annotations

import math
from dataclasses import dataclass

_Z_95 = 1.959963984540054


@dataclass(frozen=True)
class SuccessRate:
    """Successes out of episodes, with the Wilson score interval at 95 %."""

    successes: int
    episodes: int

    def __post_init__(self) -> None:
        if not 0 <= self.successes <= self.episodes:
            raise ValueError(
                f"{self.successes} successes of {self.episodes} episodes: "
                "successes must lie between 0 and the number of episodes"
            )

    @property
    def rate(self) -> float:
        """Share of successes; NaN without an episode."""
        return self.successes / self.episodes if self.episodes else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson score interval: (0, 1) without an episode, and never empty at 0 or 1."""
        n = self.episodes
        if n == 0:
            return (0.0, 1.0)
        squared = _Z_95**2
        centre = (self.rate + squared / (2 * n)) / (1 + squared / n)
        reach = (
            _Z_95
            / (1 + squared / n)
            * math.sqrt(self.rate * (1 - self.rate) / n + squared / (4 * n**2))
        )
        return (max(0.0, centre - reach), min(1.0, centre + reach))

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.rate:.3f} ({self.successes}/{self.episodes}, 95 % {low:.3f} to {high:.3f})"
