# SPDX-License-Identifier: MIT
"""Demonstrations of one task in one compact file.

A frame is one 16-bit depth plane and one flag. The file also carries the contract, so a reader
knows what the numbers mean, and the seeds, so an episode can be played again and rendered. It is a
plain `.npz` of numeric arrays and JSON text; reading it never unpickles anything.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equi_core.contract import ContractError, PolicyContract
from equi_core.files.array_file import ArrayFileError, read_arrays
from equi_core.files.plain_data import PlainDataError, parse_json
from equi_rl.data.atomic_file import atomic_file
from equi_rl.data.episode import pack_depth, unpack_depth
from equi_rl.envs import HiddenPropertyEnv
from equi_rl.experts import Expert

FORMAT_VERSION = 1
_ARRAYS = {
    "depth": np.uint16,
    "holding": np.bool_,
    "action": np.float32,
    "requested": np.float32,
    "reward": np.float32,
    "length": np.int64,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "success": np.bool_,
    "movable_first": np.bool_,
    "seed": np.int64,
}


class DemoError(ValueError):
    """A demonstration file that cannot be read, or an episode that is not in it."""


@dataclass(frozen=True, eq=False)
class Demo:
    """One demonstrated episode of T steps."""

    depth: NDArray[np.uint16]
    """Depth planes (T + 1, S, S) as `equi_rl.data.episode.pack_depth` stores them."""
    holding: NDArray[np.bool_]
    """(T + 1,)."""
    executed_action: NDArray[np.float32]
    """Executed policy vectors (T, 5)."""
    requested_action: NDArray[np.float32]
    """What the expert asked for (T, 5), before clipping: plays the episode again bit for bit."""
    reward: NDArray[np.float32]
    """(T,)."""
    terminated: bool
    truncated: bool
    success: bool
    movable_first: bool
    """Whether the expert tried the movable object first."""
    seed: int

    def observation(self, step: int) -> NDArray[np.float32]:
        """Observation (2, S, S) before step `step`; `len(executed_action)` gives the last one."""
        depth = unpack_depth(self.depth[step])
        return np.stack([depth, np.full_like(depth, float(self.holding[step]))])


@dataclass(frozen=True, eq=False)
class DemoSet:
    """Episodes of one task, and the contract under which they were recorded."""

    contract: PolicyContract
    demos: tuple[Demo, ...]

    def save(self, path: Path) -> None:
        """Write the file; a reader sees either the old one or the whole new one."""
        meta = {"format_version": FORMAT_VERSION, "contract": json.loads(self.contract.to_json())}
        columns = {
            "depth": np.concatenate([demo.depth for demo in self.demos]),
            "holding": np.concatenate([demo.holding for demo in self.demos]),
            "action": np.concatenate([demo.executed_action for demo in self.demos]),
            "requested": np.concatenate([demo.requested_action for demo in self.demos]),
            "reward": np.concatenate([demo.reward for demo in self.demos]),
            "length": np.array([len(demo.executed_action) for demo in self.demos]),
            **{
                name: np.array([getattr(demo, name) for demo in self.demos])
                for name in ("terminated", "truncated", "success", "movable_first", "seed")
            },
        }
        with atomic_file(path) as file:
            np.savez_compressed(
                file,
                meta=np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8),
                **{name: columns[name].astype(kind) for name, kind in _ARRAYS.items()},
            )

    @classmethod
    def load(cls, path: Path) -> DemoSet:
        """Read a file written by `save`."""
        if not path.is_file():
            raise DemoError(f"{path} does not exist; make it with 'equi-demos record'")
        try:
            columns = read_arrays(path, ("meta", *_ARRAYS))
            meta = parse_json(columns.pop("meta").tobytes().decode())
        except (ArrayFileError, PlainDataError, UnicodeDecodeError) as error:
            raise DemoError(f"{path} is not a demonstration file: {error}") from error
        if not isinstance(meta, dict):
            raise DemoError(f"{path} is not a demonstration file: its description is missing")
        if meta.get("format_version") != FORMAT_VERSION:
            raise DemoError(
                f"{path} has format version {meta.get('format_version')}; this code reads "
                f"{FORMAT_VERSION}; record it again"
            )
        try:
            contract = PolicyContract.from_json(json.dumps(meta["contract"]))
        except (KeyError, ContractError) as error:
            raise DemoError(f"{path} carries no usable contract ({error})") from error
        _require_arrays(path, columns)
        return cls(contract, tuple(_split(columns)))


def play_demo(env: HiddenPropertyEnv, expert: Expert, seed: int, first: int | None = None) -> Demo:
    """Let the expert play the episode of a seed.

    Args:
        env: environment.
        expert: of the same task.
        seed: of the scene and, in a stream of its own, of the expert's coin.
        first: index of the object to try first; None lets the expert choose.
    """
    observation, _ = env.reset(seed=seed)
    state = env.state()
    if first is None:
        memory = expert.start(state, np.random.default_rng([1, seed]))
    else:
        memory = expert.start_with(state, first)
    movable_first = state.scene.objects[memory.target].movable
    frames, actions, requests, rewards = [observation], [], [], []
    while True:
        action, memory = expert.act(env.state(), memory)
        requested = action.astype(np.float32)
        observation, reward, terminated, truncated, info = env.step(requested)
        frames.append(observation)
        actions.append(info["executed_action"])
        requests.append(requested)
        rewards.append(reward)
        if terminated or truncated:
            break
    return Demo(
        depth=np.stack([pack_depth(frame[0]) for frame in frames]),
        holding=np.array([frame[1, 0, 0] > 0.5 for frame in frames]),
        executed_action=np.array(actions, dtype=np.float32),
        requested_action=np.array(requests, dtype=np.float32),
        reward=np.array(rewards, dtype=np.float32),
        terminated=terminated,
        truncated=truncated,
        success=bool(info["success"]),
        movable_first=movable_first,
        seed=seed,
    )


def _require_arrays(path: Path, columns: dict[str, NDArray[np.generic]]) -> None:
    """Every array of the kind and the dimensions that `save` wrote."""
    dimensions = {"depth": 3, "action": 2, "requested": 2}
    episodes = len(columns["length"]) if columns["length"].ndim == 1 else -1
    for name, kind in _ARRAYS.items():
        array = columns[name]
        if array.dtype != np.dtype(kind) or array.ndim != dimensions.get(name, 1):
            raise DemoError(
                f"{path}: array '{name}' is {array.dtype} {array.shape}; it must be "
                f"{np.dtype(kind)} with {dimensions.get(name, 1)} dimensions"
            )
        if name in ("terminated", "truncated", "success", "movable_first", "seed"):
            if len(array) != episodes:
                raise DemoError(f"{path}: {len(array)} values of '{name}', {episodes} episodes")
        elif array.dtype.kind == "f" and not np.isfinite(array).all():
            raise DemoError(f"{path}: array '{name}' holds a number that is not finite")
    if (columns["length"].astype(np.int64) < 1).any():
        raise DemoError(f"{path}: an episode has no step")


def _split(columns: dict[str, NDArray[np.generic]]) -> Sequence[Demo]:
    """Cut the concatenated columns at the episodes' ends."""
    lengths = columns["length"].astype(np.int64)
    step_end = np.cumsum(lengths)
    frame_end = np.cumsum(lengths + 1)
    if len(columns["action"]) != lengths.sum() or len(columns["depth"]) != (lengths + 1).sum():
        raise DemoError("the file's arrays do not add up to its episodes; record it again")
    demos = []
    for i, length in enumerate(lengths):
        steps = slice(step_end[i] - length, step_end[i])
        frames = slice(frame_end[i] - length - 1, frame_end[i])
        demos.append(
            Demo(
                depth=columns["depth"][frames],  # type: ignore[arg-type]
                holding=columns["holding"][frames],  # type: ignore[arg-type]
                executed_action=columns["action"][steps],  # type: ignore[arg-type]
                requested_action=columns["requested"][steps],  # type: ignore[arg-type]
                reward=columns["reward"][steps],  # type: ignore[arg-type]
                terminated=bool(columns["terminated"][i]),
                truncated=bool(columns["truncated"][i]),
                success=bool(columns["success"][i]),
                movable_first=bool(columns["movable_first"][i]),
                seed=int(columns["seed"][i]),
            )
        )
    return demos
