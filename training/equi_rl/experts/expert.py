# SPDX-License-Identifier: MIT
"""Which object to try, for how long, and when to change to the other.

`expert.act(state, memory) -> (action, memory)`: the memory is explicit and is updated from the
state alone, so an expert can be asked along a trajectory that another policy steers.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from equi_core.contract import PolicyContract
from equi_rl.experts import skills
from equi_rl.experts.skills import Goal, action_towards
from equi_rl.sim.object_parts import handle_position_m
from equi_rl.sim.scene import ObjectKind, WorldState

FloatArray = NDArray[np.float64]
Skill = Callable[[WorldState, int, PolicyContract], Goal]

MOVED_M = 0.004
"""An object displaced by more than this is seen to be movable."""


TIE_M = 0.02
"""Objects whose distances differ by less are about equally near."""


class FirstChoice(Enum):
    """How the first object to try is chosen."""

    RANDOM = "random"
    """By a fair coin, and kept for the task's number of steps if it turns out immovable."""
    NEAREST = "nearest"
    """The one nearest to the gripper, and of two about equally near the one on the right, left as
    soon as an attempt has visibly failed: what a policy that sees only observations could do as
    well, so it can be imitated."""


@dataclass(frozen=True)
class ExpertConfig:
    """How an expert chooses and how long it insists."""

    first_choice: FirstChoice = FirstChoice.RANDOM
    tries: int | None = None
    """RANDOM: steps spent on an immovable object; None takes the task's own number."""
    rises: int | None = None
    """RANDOM: steps straight up before changing; None takes the task's own number."""
    failed_attempts: int = 1
    """NEAREST: visible failures after which an object counts as immovable."""
    stiff_arm: bool = False
    """For an arm that stops where it touches something: the task's `stiff_skill`, if it has one."""


@dataclass(frozen=True)
class ExpertMemory:
    """What an expert carries from step to step."""

    target: int
    steps: int = 0
    """Steps decided so far in this episode."""
    rising: int = 0
    """Steps straight up still to do before turning to the other object."""
    failures: tuple[int, ...] = (0, 0)
    """Visible failures per object."""
    movable: int | None = None
    """Object that was seen to move."""
    start_m: tuple[tuple[float, float, float], ...] = ()
    """Where the objects were at the start; a drawer's place includes its extension."""
    was_holding: bool = False
    last_tcp_z_m: float = 0.0


class VisibleFailure(Enum):
    """How an observer sees that an attempt on an immovable object has failed."""

    SLIPPED = "slipped"
    """The fingers rose and left the object behind."""
    BLOCKED = "blocked"
    """The gripper was stopped low beside the object."""
    HOOK_BLOCKED = "hook blocked"
    """The gripper was stopped with the fingers behind a drawer's handle."""


@dataclass(frozen=True)
class TaskPlan:
    """What an expert does in a task of two objects of which one is movable."""

    skill: Skill
    """The next goal of the gripper, given the state and the object to handle."""
    tries: int
    """Steps that the immovable object is tried, in demonstrations with a random first choice."""
    rises: int
    """Steps straight up before the other one is tried."""
    reach_m: float
    """A blocked move ended this near to the object was blocked by it."""
    failure: VisibleFailure = VisibleFailure.BLOCKED
    stiff_skill: Skill | None = None
    """The same for a stiff arm; None: no different."""
    commits: bool = False
    """Whether the first choice stands until something is learnt. The way behind a block may lead
    nearer to the other one, which must not change the choice."""


class Expert:
    """Planner for one task."""

    def __init__(self, task: str, contract: PolicyContract, config: ExpertConfig) -> None:
        if task not in _PLANS:
            raise ValueError(f"no expert for task '{task}'; known: {', '.join(_PLANS)}")
        self._plan = plan = _PLANS[task]
        self._skill = (config.stiff_arm and plan.stiff_skill) or plan.skill
        self._contract = contract
        self._config = config
        self._tries = self._plan.tries if config.tries is None else config.tries
        self._rises = self._plan.rises if config.rises is None else config.rises

    def start(self, state: WorldState, rng: np.random.Generator) -> ExpertMemory:
        """Memory at the start of an episode; the coin of RANDOM comes from `rng`."""
        if self._config.first_choice is FirstChoice.RANDOM:
            target = int(rng.integers(len(state.scene.objects)))
        else:
            target = _nearest_or_right(state)
        return self.start_with(state, target)

    def start_with(self, state: WorldState, target: int) -> ExpertMemory:
        """Memory at the start of an episode with a given first object."""
        return ExpertMemory(target=target, start_m=_places(state))

    def act(self, state: WorldState, memory: ExpertMemory) -> tuple[FloatArray, ExpertMemory]:
        """Policy vector (5,) for this state, and the memory for the next."""
        if self._config.first_choice is FirstChoice.RANDOM:
            memory = self._insist(state, memory)
        else:
            memory = self._learn(state, memory)
        if memory.rising > 0:
            x, y, z = state.tcp_position_m
            step = self._contract.action.max_step_m
            closedness = 1.0 if state.scene.objects[0].kind is ObjectKind.DRAWER else 0.0
            goal = Goal((x, y, z + step), state.yaw_rad, closedness)
        else:
            goal = self._skill(state, memory.target, self._contract)
        action = action_towards(state, goal, self._contract)
        memory = dataclasses.replace(
            memory,
            steps=memory.steps + 1,
            rising=max(0, memory.rising - 1),
            was_holding=state.holding,
            last_tcp_z_m=state.tcp_position_m[2],
        )
        return action, memory

    def _insist(self, state: WorldState, memory: ExpertMemory) -> ExpertMemory:
        """RANDOM: leave an immovable object after a fixed number of steps."""
        if memory.steps == self._tries and not state.scene.objects[memory.target].movable:
            return dataclasses.replace(memory, target=1 - memory.target, rising=self._rises)
        return memory

    def _learn(self, state: WorldState, memory: ExpertMemory) -> ExpertMemory:
        """NEAREST: draw conclusions from what can be seen, and choose by them."""
        places = _places(state)
        moved = [
            math.dist(place, start) > MOVED_M
            for place, start in zip(places, memory.start_m, strict=True)
        ]
        if any(moved):
            index = moved.index(True)
            return dataclasses.replace(memory, movable=index, target=index, rising=0)
        failed = self._visible_failure(state, memory)
        failures = list(memory.failures)
        if failed is not None:
            failures[failed] += 1
            if min(failures) >= self._config.failed_attempts:
                # One of them must move: the attempt on the other one was no good.
                failures[1 - failed] = 0
        target, rising = memory.target, memory.rising
        if failures[target] >= self._config.failed_attempts > failures[1 - target]:
            target, rising = 1 - target, 1
        elif sum(failures) == 0 and not self._plan.commits:
            ways_m = _ways_m(state)
            # Nothing learnt yet: change only for an object that is clearly nearer.
            if ways_m[1 - target] < ways_m[target] - 0.03:
                target = 1 - target
        return dataclasses.replace(memory, target=target, rising=rising, failures=tuple(failures))

    def _visible_failure(self, state: WorldState, memory: ExpertMemory) -> int | None:
        """The object on which an attempt has just failed, as an observer would see it."""
        ways_m = _ways_m(state)
        near = int(np.argmin(ways_m))
        if ways_m[near] > self._plan.reach_m:
            return None
        if self._plan.failure is VisibleFailure.SLIPPED:
            lost = memory.was_holding and not state.holding
            rose = state.tcp_position_m[2] > memory.last_tcp_z_m + 0.02
            slipped = state.holding and rose and state.held_object is None
            return near if (lost and rose) or slipped else None
        if self._plan.failure is VisibleFailure.HOOK_BLOCKED:
            # Coming down on the bar or the cabinet blocks the gripper too, and says nothing.
            sits = skills.in_gap if self._config.stiff_arm else skills.hooked
            tried = sits(state, near) > 0.5
        else:
            tried = state.tcp_position_m[2] < 0.06
        return near if state.blocked and tried else None


def make_expert(
    task: str, contract: PolicyContract | None = None, config: ExpertConfig | None = None
) -> Expert:
    """The expert of a task."""
    return Expert(task, contract or PolicyContract(task=task), config or ExpertConfig())


def _pick(state: WorldState, index: int, contract: PolicyContract) -> Goal:
    return skills.pick(state, index)


def _pull(state: WorldState, index: int, contract: PolicyContract) -> Goal:
    other = state.scene.objects[1 - index]
    return skills.push(state, index, other.xy_m, skills.OPEN, skills.HEAVY_BLOCK, contract)


def _push(state: WorldState, index: int, contract: PolicyContract) -> Goal:
    goal = state.scene.goal_xy_m or contract.workspace.centre_xy_m
    return skills.push(state, index, goal, skills.HALF_OPEN, skills.SMALL_CUBE, contract)


def _open(state: WorldState, index: int, contract: PolicyContract) -> Goal:
    return skills.open_drawer(state, index)


def _open_stiffly(state: WorldState, index: int, contract: PolicyContract) -> Goal:
    return skills.open_drawer(state, index, stiff_arm=True)


# How long the immovable object is tried, and how many steps straight up follow, as in the reference
# demonstrations that the tasks come from.
_PLANS: dict[str, TaskPlan] = {
    "block_picking": TaskPlan(
        _pick, tries=11, rises=5, reach_m=0.06, failure=VisibleFailure.SLIPPED
    ),
    "block_pulling": TaskPlan(_pull, tries=11, rises=2, reach_m=0.12),
    "block_pushing": TaskPlan(_push, tries=9, rises=2, reach_m=0.12, commits=True),
    "drawer_opening": TaskPlan(
        _open,
        tries=9,
        rises=2,
        reach_m=0.08,
        failure=VisibleFailure.HOOK_BLOCKED,
        stiff_skill=_open_stiffly,
    ),
}


def register_expert(task: str, plan: TaskPlan) -> None:
    """Give a task of your own an expert; the same plan twice changes nothing."""
    if _PLANS.get(task, plan) != plan:
        raise ValueError(f"task '{task}' already has an expert; choose another name")
    _PLANS[task] = plan


def _places(state: WorldState) -> tuple[tuple[float, float, float], ...]:
    """Where the objects, or the handles of drawers, are."""
    return tuple(
        handle_position_m(item) if item.kind is ObjectKind.DRAWER else item.position_m
        for item in state.scene.objects
    )


def _ways_m(state: WorldState) -> list[float]:
    """Horizontal distance from the gripper to each object [m]."""
    x, y, _ = state.tcp_position_m
    return [math.hypot(place[0] - x, place[1] - y) for place in _places(state)]


def _nearest_or_right(state: WorldState) -> int:
    """The nearest object; one to the right of the other, seen from the gripper, counts as nearer.

    A difference of millimetres cannot be seen. Right and left can, and turn with the scene.
    """
    x, y, _ = state.tcp_position_m
    (ax, ay, _), (bx, by, _) = _places(state)
    turn_m2 = (ax - x) * (by - y) - (ay - y) * (bx - x)
    right = 0 if turn_m2 > 0.0 else 1
    ways_m = _ways_m(state)
    return right if ways_m[right] < ways_m[1 - right] + TIE_M else 1 - right
