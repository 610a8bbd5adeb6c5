"""What one update of SAC learns from: whole episodes, packed without padding."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from equi_rl.data.packing import EpisodeLayout
from equi_rl.nets.config import ArchitectureError


@dataclass(frozen=True)
class EpisodeBatch:
    """Packed episodes; see EpisodeLayout for the order of frames (F) and transitions (D).

    Attributes:
        layout: which frame and transition belongs where.
        depth_m: (F, S, S) depth [m], any floating type.
        holding: (F,) holding flag, 0 or 1.
        actions: (D, 5) executed actions in policy units.
        rewards: (D,).
        terminated: (D,) 1 where the episode truly ended; a time-out is 0 and bootstraps.
        moment: (D,) equal numbers mark augmented copies of one transition, which share the mean of
            their targets (DrQ); None: no copies.
    """

    layout: EpisodeLayout
    depth_m: Tensor
    holding: Tensor
    actions: Tensor
    rewards: Tensor
    terminated: Tensor
    moment: Tensor | None = None

    def __post_init__(self) -> None:
        frames, steps = self.layout.n_frames, self.layout.n_steps
        for name, wanted in (
            ("depth_m", frames),
            ("holding", frames),
            ("actions", steps),
            ("rewards", steps),
            ("terminated", steps),
        ):
            if len(getattr(self, name)) != wanted:
                raise ArchitectureError(
                    f"batch.{name} has {len(getattr(self, name))} rows; the layout has {wanted}"
                )
