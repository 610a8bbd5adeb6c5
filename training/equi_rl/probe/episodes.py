# SPDX-License-Identifier: MIT
"""Episodes for a probe: the LSTM state at every step, where the objects are, which one is movable.

Every scene is played twice, once with either object movable. Until something is touched the two
episodes are the same to the last bit (the world keeps its secret), so whatever a probe finds there
is noise of its own, not chance in the choice of scenes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equi_core.contract import ACTION_ORDER
from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.data.atomic_file import write_atomically
from equi_rl.envs import HiddenPropertyEnv
from equi_rl.sim.object_parts import handle_position_m
from equi_rl.sim.scene import ObjectKind, Scene, SceneObject, WorldState

FloatArray = NDArray[np.float64]

_MOVED_M = 1e-4
"""An object further than this from its start was touched."""


@dataclass(frozen=True, eq=False)
class ProbeEpisode:
    """One episode as a probe sees it; arrays over its observations."""

    seed: int
    swapped: bool
    """Whether the hidden property was exchanged."""
    states: NDArray[np.float32]
    """(T, 2 * channels): hidden and cell state of the LSTM after each observation."""
    places_m: FloatArray
    """(T, 2, 2): places of the two objects relative to the gripper [m], axes of the task frame."""
    movable: int
    """Index of the movable object."""
    contact_step: int
    """First observation after something was touched, in this episode or its twin: until then they
    are the same. T if nothing was."""
    success: bool


def play_pair(env: HiddenPropertyEnv, policy: ActingPolicy, seed: int) -> list[ProbeEpisode]:
    """Play the scene of a seed and its twin with the hidden property exchanged."""
    scene = env.scene_of_seed(seed)
    pair = [
        _play(env, policy, seed, scene, swapped=False),
        _play(env, policy, seed, scene.with_mobility_swapped(), swapped=True),
    ]
    # Fingers that graze a block show in the twin in which it moves, and were there in both.
    first = min(episode.contact_step for episode in pair)
    return [replace(episode, contact_step=first) for episode in pair]


def _play(
    env: HiddenPropertyEnv, policy: ActingPolicy, seed: int, scene: Scene, *, swapped: bool
) -> ProbeEpisode:
    observation, _ = env.reset(seed=seed, options={"scene": scene})
    start = env.state()
    state = policy.start(seed)
    executed = np.zeros(len(ACTION_ORDER), dtype=np.float32)
    states: list[NDArray[np.float32]] = []
    places: list[list[FloatArray]] = []
    contact_step: int | None = None
    ended = success = False
    while not ended:
        action, state = policy.act(observation, executed, state)
        now = env.state()
        if contact_step is None and states and _touched(env, start, now):
            contact_step = len(states)
        states.append(np.concatenate([state.hidden[0].numpy(), state.cell[0].numpy()]))
        tcp = np.array(now.tcp_position_m[:2])
        places.append([np.array(place_m(item)) - tcp for item in now.scene.objects])
        observation, _, terminated, truncated, info = env.step(action)
        executed = info["executed_action"]
        ended, success = terminated or truncated, bool(info["success"])
    return ProbeEpisode(
        seed,
        swapped,
        np.array(states, dtype=np.float32),
        np.array(places),
        next(i for i, item in enumerate(scene.objects) if item.movable),
        len(states) if contact_step is None else contact_step,
        success,
    )


def place_m(item: SceneObject) -> tuple[float, float]:
    """Where an object is tried: the middle of a block, the handle of a drawer."""
    if item.kind is ObjectKind.DRAWER:
        x, y, _ = handle_position_m(item)
        return float(x), float(y)
    return item.xy_m


def _touched(env: HiddenPropertyEnv, start: WorldState, now: WorldState) -> bool:
    if now.holding or now.blocked:
        return True
    for index, (item, before) in enumerate(
        zip(now.scene.objects, start.scene.objects, strict=True)
    ):
        if any(env.world.fingers_touching(index)):
            return True
        if float(np.linalg.norm(np.subtract(place_m(item), place_m(before)))) > _MOVED_M:
            return True
    return False


# --- kept on disk: playing takes minutes, fitting seconds -----------------------------------------


def recorded_pairs(
    env: HiddenPropertyEnv, policy: ActingPolicy, digest: str, seeds: range, folder: Path
) -> Iterator[list[ProbeEpisode]]:
    """The pairs of some scenes: read where they were recorded, played and recorded where not.

    Args:
        env: environment of the policy's task.
        policy: what acts.
        digest: of its weights; episodes of others are kept apart.
        seeds: scenes.
        folder: where episodes are recorded.
    """
    place = folder / env.task / digest[:16]
    place.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        path = place / f"{seed}.npz"
        if path.is_file():
            yield _load(path)
        else:
            pair = play_pair(env, policy, seed)
            _save(path, pair)
            yield pair


def _save(path: Path, pair: list[ProbeEpisode]) -> None:
    arrays: dict[str, NDArray[np.generic]] = {}
    for number, episode in enumerate(pair):
        arrays |= {
            f"states_{number}": episode.states,
            f"places_{number}": episode.places_m.astype(np.float32),
            f"facts_{number}": np.array(
                [
                    episode.seed,
                    episode.swapped,
                    episode.movable,
                    episode.contact_step,
                    episode.success,
                ],
                dtype=np.int64,
            ),
        }
    buffer = BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomically(path, buffer.getvalue())


def _load(path: Path) -> list[ProbeEpisode]:
    with np.load(path, allow_pickle=False) as data:
        pair = []
        for number in range(2):
            seed, swapped, movable, contact_step, success = data[f"facts_{number}"].tolist()
            pair.append(
                ProbeEpisode(
                    seed,
                    bool(swapped),
                    data[f"states_{number}"],
                    data[f"places_{number}"].astype(np.float64),
                    movable,
                    contact_step,
                    bool(success),
                )
            )
        return pair
