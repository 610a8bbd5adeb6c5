# SPDX-License-Identifier: MIT
"""What an environment must offer to be audited, and the adapter for the robot tasks.

An environment of another package is auditable when its unwrapped object has a method
``audit_task(group) -> AuditTask``. States are whatever the environment likes, as long as it can be
put into one (``start``) and the group can act on one (``transform_state``).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import gymnasium
import numpy as np

from equi_rl.nets import symmetry
from equi_rl.nets.symmetry import Element, Group

if TYPE_CHECKING:
    from equi_rl.envs.base import HiddenPropertyEnv
    from equi_rl.sim.scene import Scene, SceneObject

Features = dict[str, np.ndarray]


class AuditError(ValueError):
    """An environment that cannot be audited as asked; says what it lacks."""


@dataclass(frozen=True)
class AuditStep:
    """What one step led to; ``state`` includes what the agent cannot see."""

    state: Any
    observation: np.ndarray
    reward: float
    ended: bool


class AuditTask(Protocol):
    """A partially observable task on which a group is claimed to act."""

    group: Group

    def sample_start(self, rng: np.random.Generator) -> Any:
        """Draw a state from the initial distribution b_0."""

    def start(self, state: Any) -> np.ndarray:
        """Put the environment into ``state``, a start or any later one; returns what it shows."""

    def sample_action(self, rng: np.random.Generator) -> Any:
        """Draw any action."""

    def step(self, action: Any) -> AuditStep:
        """Execute one action."""

    def transform_state(self, g: Element, state: Any) -> Any:
        """The state g s."""

    def transform_action(self, g: Element, action: Any) -> Any:
        """The action g a."""

    def transform_observation(self, g: Element, observation: np.ndarray) -> np.ndarray:
        """The observation g o."""

    def features(self, state: Any) -> Features:
        """Numbers that tell states apart, grouped under names with units, e.g. 'position [m]'."""


Adapters = Mapping[type[Any], Callable[[Any, Group], AuditTask]]
"""How to audit environments of a class: called with the environment and the group."""


def audit_task(
    env_id: str, group_name: str, adapters: Adapters = MappingProxyType({}), **options: Any
) -> AuditTask:
    """The auditable form of a registered environment; raises AuditError if there is none.

    Args:
        env_id: gymnasium id.
        group_name: group that is claimed to act on it.
        adapters: how to audit classes of environments that have no ``audit_task`` of their own.
        options: arguments of the environment's constructor.
    """
    import equi_rl.envs  # noqa: F401  registers ours
    from equi_rl.envs.base import HiddenPropertyEnv

    group = symmetry.group_named(group_name)
    try:
        env: Any = gymnasium.make(env_id, disable_env_checker=True, **options).unwrapped
    except gymnasium.error.Error as error:
        raise AuditError(f"environment {env_id!r} cannot be made: {error}") from error
    if hasattr(env, "audit_task"):
        task: AuditTask = env.audit_task(group)
        return task
    known: Adapters = {HiddenPropertyEnv: ManipulationTask, **adapters}
    for kind, adapter in known.items():
        if isinstance(env, kind):
            return adapter(env, group)
    raise AuditError(
        f"environment {env_id!r} ({type(env).__name__}) has no audit_task(group) method"
    )


class ManipulationTask:
    """Adapter for the robot tasks: scenes rotate about the middle of the workspace."""

    def __init__(self, env: HiddenPropertyEnv, group: Group) -> None:
        if group.on_line:
            raise AuditError("the flip of a line does not act on a robot's workspace")
        self.env, self.group = env, group
        self._pivot = env.contract.workspace.centre_xy_m

    def sample_start(self, rng: np.random.Generator) -> Scene:
        """A scene as the task draws it."""
        return self.env.sample_scene(rng)

    def start(self, state: Scene) -> np.ndarray:
        """Rebuild the scene in the physics."""
        return self.env.reset(seed=0, options={"scene": state})[0]

    def sample_action(self, rng: np.random.Generator) -> np.ndarray:
        """Uniform in the policy's box; (x, y) in the disc, so that its rotations are legal too."""
        action = rng.uniform(-1.0, 1.0, 5)
        length = math.hypot(action[1], action[2])
        action[1:3] /= max(1.0, length)
        return action

    def step(self, action: np.ndarray) -> AuditStep:
        """One step of the environment."""
        observation, reward, terminated, truncated, _ = self.env.step(action)
        return AuditStep(
            self.env.state().scene, observation, float(reward), terminated or truncated
        )

    def transform_state(self, g: Element, state: Scene) -> Scene:
        """Mirror (y -> -y about the middle) if asked, then rotate."""
        scene = _mirrored(state, self._pivot) if g.mirror else state
        return scene.rotated(self.group.angle_rad(g), self._pivot)

    def transform_action(self, g: Element, action: np.ndarray) -> np.ndarray:
        """The mixed representation of (w, x, y, z, r)."""
        return symmetry.transform_action(self.group, g, action)

    def transform_observation(self, g: Element, observation: np.ndarray) -> np.ndarray:
        """The image rotates about its own centre, which is the gripper."""
        return symmetry.transform_observation(self.group, g, observation)

    def features(self, state: Scene) -> Features:
        """Places, headings and the hidden property of every object, and the gripper's pose."""
        items = state.objects
        places = [item.position_m for item in items] + [state.tcp_position_m]
        if state.goal_xy_m is not None:
            places.append((*state.goal_xy_m, 0.0))
        # A square block looks the same after a quarter turn, a gripper after half a turn.
        headings = [_direction(_footprint_symmetry(item) * item.yaw_rad) for item in items]
        headings.append(_direction(2 * state.yaw_rad))
        return {
            "position [m]": np.ravel(places),
            "heading [cos, sin]": np.ravel(headings),
            "drawer extension [m]": np.array([item.extension_m for item in items]),
            "opening [share]": np.array([state.opening]),
            "movable": np.array([float(item.movable) for item in items]),
        }


def _footprint_symmetry(item: SceneObject) -> int:
    """How many rotations leave the object's outline on the table as it is."""
    if item.kind.value == "drawer":
        return 1
    return 4 if item.size_m[0] == item.size_m[1] else 2


def _direction(angle_rad: float) -> tuple[float, float]:
    return math.cos(angle_rad), math.sin(angle_rad)


def _mirrored(scene: Scene, pivot: tuple[float, float]) -> Scene:
    """The scene seen in a mirror along the line y = pivot y."""

    def flip(position: tuple[float, ...]) -> Any:
        return (position[0], 2.0 * pivot[1] - position[1], *position[2:])

    def flip_quaternion(quaternion: Any) -> Any:
        if quaternion is None:
            return None
        x, y, z, w = quaternion
        return (-x, y, -z, w)

    return dataclasses.replace(
        scene,
        objects=tuple(
            dataclasses.replace(
                item,
                position_m=flip(item.position_m),
                yaw_rad=-item.yaw_rad,
                quaternion_xyzw=flip_quaternion(item.quaternion_xyzw),
            )
            for item in scene.objects
        ),
        tcp_position_m=flip(scene.tcp_position_m),
        yaw_rad=-scene.yaw_rad,
        goal_xy_m=None if scene.goal_xy_m is None else flip(scene.goal_xy_m),
    )
