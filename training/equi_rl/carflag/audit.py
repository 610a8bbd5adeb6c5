# SPDX-License-Identifier: MIT
"""The symmetry audit of the CarFlag worlds, and the sizes of the networks trained on them."""

from __future__ import annotations

import numpy as np

from equi_rl.audit.networks import ParameterRow
from equi_rl.audit.task import Adapters, AuditError, AuditStep, Features
from equi_rl.carflag.env import CarFlag1DEnv, CarFlag2DEnv
from equi_rl.carflag.policy import GridPolicy
from equi_rl.carflag.worlds import CarFlag1D, CarFlag2D, World
from equi_rl.nets import symmetry
from equi_rl.nets.symmetry import Element, Group


class LineTask:
    """Adapter for CarFlag-1D under the flip of the line."""

    def __init__(self, env: CarFlag1DEnv, group: Group) -> None:
        if not group.on_line:
            raise AuditError(f"{group.name} does not act on a line; use the group 'flip'")
        self.env, self.group = env, group

    def sample_start(self, rng: np.random.Generator) -> tuple[int, int]:
        """(cell, side of the goal)."""
        self.env.reset(seed=int(rng.integers(2**31)))
        return self.env.cell, self.env.goal_side

    def start(self, state: tuple[int, int]) -> np.ndarray:
        """Any cell is allowed here, also ones on which no episode starts."""
        self.env.reset(seed=0)
        self.env.cell, self.env.goal_side = state
        return self.env.world.observe(*state)

    def sample_action(self, rng: np.random.Generator) -> int:
        """Left or right."""
        return int(rng.integers(2))

    def step(self, action: int) -> AuditStep:
        """One step of the environment."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        state = (self.env.cell, self.env.goal_side)
        return AuditStep(state, observation, float(reward), terminated or truncated)

    def transform_state(self, g: Element, state: tuple[int, int]) -> tuple[int, int]:
        """Both numbers change sign."""
        return (-state[0], -state[1]) if g.mirror else state

    def transform_action(self, g: Element, action: int) -> int:
        """Left and right are exchanged."""
        return 1 - action if g.mirror else action

    def transform_observation(self, g: Element, observation: np.ndarray) -> np.ndarray:
        """Every component changes sign."""
        return symmetry.transform_observation(self.group, g, observation)

    def features(self, state: tuple[int, int]) -> Features:
        """Cell and goal side."""
        return {"cell": np.array([float(state[0])]), "goal side": np.array([float(state[1])])}


class GridTask:
    """Adapter for CarFlag-2D under quarter turns of the grid."""

    def __init__(self, env: CarFlag2DEnv, group: Group) -> None:
        if group.order != 4 or group.mirrored:
            raise AuditError(f"{group.name} does not act on the four moves of a grid; use 'C4'")
        self.env, self.group = env, group

    def sample_start(self, rng: np.random.Generator) -> tuple[tuple[int, int], tuple[int, int]]:
        """(agent's cell, goal's cell)."""
        self.env.reset(seed=int(rng.integers(2**31)))
        return self.env.cell, self.env.goal

    def start(self, state: tuple[tuple[int, int], tuple[int, int]]) -> np.ndarray:
        """Any pair of cells is allowed here."""
        self.env.reset(seed=0)
        self.env.cell, self.env.goal = state
        return self.env.world.observe(*state)

    def sample_action(self, rng: np.random.Generator) -> int:
        """One of the four moves."""
        return int(rng.integers(4))

    def step(self, action: int) -> AuditStep:
        """One step of the environment."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        state = (self.env.cell, self.env.goal)
        return AuditStep(state, observation, float(reward), terminated or truncated)

    def transform_state(
        self, g: Element, state: tuple[tuple[int, int], tuple[int, int]]
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """Both cells turn with the image."""
        return self._rotated(g, state[0]), self._rotated(g, state[1])

    def transform_action(self, g: Element, action: int) -> int:
        """Moves are numbered counter-clockwise, so they shift."""
        return int(symmetry.transform_discrete_action(self.group, g, np.array(action)))

    def transform_observation(self, g: Element, observation: np.ndarray) -> np.ndarray:
        """The planes turn."""
        return symmetry.transform_observation(self.group, g, observation)

    def features(self, state: tuple[tuple[int, int], tuple[int, int]]) -> Features:
        """Rows and columns, counted from the middle."""
        middle = self.env.world.size // 2
        return {
            "agent [cells]": np.array(state[0], dtype=float) - middle,
            "goal [cells]": np.array(state[1], dtype=float) - middle,
        }

    def _rotated(self, g: Element, cell: tuple[int, int]) -> tuple[int, int]:
        row, column = cell
        for _ in range(g.rotation):  # counter-clockwise: the right edge becomes the top
            row, column = self.env.world.size - 1 - column, row
        return row, column


ADAPTERS: Adapters = {CarFlag1DEnv: LineTask, CarFlag2DEnv: GridTask}


def parameter_rows() -> list[ParameterRow]:
    """Parameter counts of the equivariant and the plain network on each world."""
    worlds: dict[str, World] = {
        "line (flip)": CarFlag1D(),
        "9 x 9 grid (C4)": CarFlag2D(9),
        "11 x 11 grid (C4)": CarFlag2D(11),
    }
    return [
        ParameterRow(
            f"CarFlag {name}, {kind}",
            policy.num_parameters,
            0,
            policy.count_parameters("encoder"),
            policy.count_parameters("lstm"),
        )
        for name, world in worlds.items()
        for kind in ("equivariant", "plain")
        for policy in [GridPolicy(world, equivariant=kind == "equivariant")]
    ]
