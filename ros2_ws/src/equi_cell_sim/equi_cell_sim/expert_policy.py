# SPDX-License-Identifier: MIT
"""The scripted expert behind the interface of a learned policy.

It reads the emulator's true poses instead of the image, so it shows that everything else works:
cameras, fusion, session, driver. It is no policy for a real cell.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core.contract import PolicyContract
from equi_rl.experts import ExpertConfig, make_expert
from equi_rl.experts.expert import ExpertMemory
from equi_rl.sim.scene import WorldState


@dataclass(frozen=True)
class ExpertState:
    """Explicit memory of the expert; None before its first step."""

    memory: ExpertMemory | None = None

    def with_executed(self, action: ArrayLike) -> ExpertState:
        """The expert reads the scene, not what was executed."""
        return self


@dataclass(frozen=True)
class ExpertStep:
    """As a learned policy's step; the expert's standard deviation is zero."""

    action: NDArray[np.float32]
    state: ExpertState
    std: NDArray[np.float32]
    state_norm: float = 0.0


class ExpertPolicy:
    """Acts on the true state of the cell, as `read_state` returns it."""

    def __init__(
        self,
        contract: PolicyContract,
        read_state: Callable[[], WorldState],
        seed: int = 0,
        config: ExpertConfig | None = None,
    ) -> None:
        self.contract = contract
        self._read_state = read_state
        self._expert = make_expert(contract.task, contract, config)
        self._rng = np.random.default_rng(seed)

    def initial_state(self) -> ExpertState:
        """Memory before the first step."""
        return ExpertState()

    def step(self, observation: Any, state: ExpertState) -> ExpertStep:
        """One decision from the true poses; only the holding flag comes from the observation.

        The robot says whether it holds something; in the physics the answer may change from one
        millisecond to the next while the fingers still turn an object.
        """
        world = self._read_state()
        world = dataclasses.replace(world, holding=bool(np.asarray(observation)[1].max() > 0.5))
        memory = state.memory or self._expert.start(world, self._rng)
        action, memory = self._expert.act(world, memory)
        return ExpertStep(
            action=np.clip(action, -1.0, 1.0).astype(np.float32),
            state=dataclasses.replace(state, memory=memory),
            std=np.zeros(5, dtype=np.float32),
        )
