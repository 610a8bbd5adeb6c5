# SPDX-License-Identifier: MIT
"""Rollouts: an expert demonstrates, or a policy acts while an expert may label its states.

The recurrent policy is fed the action that was executed, not the one it requested; both are
recorded, and the simulator's state beside them. An expert that labels is asked at every state
which the policy reaches and keeps its own memory along that path, so it can also take over and show
how to continue from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equi_core.contract import ACTION_ORDER
from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.data.episode import Episode, EpisodeRecorder
from equi_rl.envs import HiddenPropertyEnv
from equi_rl.envs.privileged_state import PrivilegedStateTracker
from equi_rl.experts import Expert
from equi_rl.sim.scene import WorldState

_TRIED_BELOW_M = 0.08
"""The object nearest to the gripper when it first comes down below this height was tried first."""


@dataclass(frozen=True)
class EpisodeOutcome:
    """How an episode went."""

    seed: int
    steps: int
    success: bool
    failure: str
    """Why it ended without success; "time ran out" when nothing else did."""
    movable_first: bool | None
    """Whether the movable object was the first one tried; None if none was."""


def play_expert(
    env: HiddenPropertyEnv, expert: Expert, seed: int
) -> tuple[Episode, EpisodeOutcome]:
    """One demonstration on the scene of `seed`; the expert's coin comes from the same seed."""
    observation, _ = env.reset(seed=seed)
    recorder = EpisodeRecorder(observation)
    privileged = PrivilegedStateTracker(env.contract.workspace.centre_xy_m)
    recorder.add_privileged(*privileged.observe(env.state()))
    tracker = _OutcomeTracker(seed)
    memory = expert.start(env.state(), np.random.default_rng(seed))
    while True:
        action, memory = expert.act(env.state(), memory)
        observation, reward, terminated, truncated, info = env.step(action)
        executed = info["executed_action"]
        recorder.add(action, executed, reward, observation, expert_action=executed)
        recorder.add_privileged(*privileged.observe(env.state()))
        tracker.observe(env.state(), info)
        if terminated or truncated:
            return recorder.finish(terminated, is_demonstration=True), tracker.outcome()


def play_policy(
    env: HiddenPropertyEnv,
    policy: ActingPolicy,
    seed: int,
    *,
    rng: np.random.Generator | None = None,
    expert: Expert | None = None,
    expert_takeover_at: int | None = None,
    exploration_std: float | None = None,
) -> tuple[Episode, EpisodeOutcome]:
    """One episode of a policy on the scene of `seed`.

    Args:
        env: environment.
        policy: what acts.
        seed: of the scene, and of the policy's state before it if that is random.
        rng: draws random actions; None plays the policy's mean.
        expert: labels every state with the action that it would take; None: no labels.
        expert_takeover_at: step from which on the expert acts itself; None: never.
        exploration_std: with `rng`, standard deviation of noise that is added to the policy's mean,
            in policy units; None draws actions from the policy itself.
    """
    if expert_takeover_at is not None and expert is None:
        raise ValueError(
            f"expert_takeover_at is {expert_takeover_at}; it must be None without an expert"
        )
    observation, _ = env.reset(seed=seed)
    recorder = EpisodeRecorder(observation)
    privileged = PrivilegedStateTracker(env.contract.workspace.centre_xy_m)
    recorder.add_privileged(*privileged.observe(env.state()))
    tracker = _OutcomeTracker(seed)
    state = policy.start(seed)
    executed = np.zeros(len(ACTION_ORDER), dtype=np.float32)
    memory = None
    if expert is not None:
        memory = expert.start(env.state(), np.random.default_rng(seed))
    while True:
        if exploration_std is None or rng is None:
            action, state = policy.act(observation, executed, state, rng)
        else:
            action, state = policy.act(observation, executed, state)
            noise = exploration_std * rng.standard_normal(len(action)).astype(np.float32)
            action = np.clip(action + noise, -1.0, 1.0)
        label = None
        if expert is not None and memory is not None:
            label, memory = expert.act(env.state(), memory)
            if expert_takeover_at is not None and recorder.n_steps >= expert_takeover_at:
                action = label.astype(np.float32)
        observation, reward, terminated, truncated, info = env.step(action)
        executed = info["executed_action"]
        recorder.add(action, executed, reward, observation, expert_action=label)
        recorder.add_privileged(*privileged.observe(env.state()))
        tracker.observe(env.state(), info)
        if terminated or truncated:
            return recorder.finish(terminated), tracker.outcome()


def play_random(env: HiddenPropertyEnv, seed: int) -> tuple[Episode, EpisodeOutcome]:
    """One episode of uniformly random actions on the scene of `seed`."""
    observation, _ = env.reset(seed=seed)
    recorder = EpisodeRecorder(observation)
    privileged = PrivilegedStateTracker(env.contract.workspace.centre_xy_m)
    recorder.add_privileged(*privileged.observe(env.state()))
    tracker = _OutcomeTracker(seed)
    rng = np.random.default_rng((seed, 1))
    while True:
        action = rng.uniform(-1.0, 1.0, size=len(ACTION_ORDER))
        observation, reward, terminated, truncated, info = env.step(action)
        recorder.add(action, info["executed_action"], reward, observation)
        recorder.add_privileged(*privileged.observe(env.state()))
        tracker.observe(env.state(), info)
        if terminated or truncated:
            return recorder.finish(terminated), tracker.outcome()


class _OutcomeTracker:
    """Watches an episode from outside and sums it up."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._steps = 0
        self._movable_first: bool | None = None
        self._success = False
        self._failure = ""

    def observe(self, state: WorldState, info: dict[str, object]) -> None:
        self._steps += 1
        self._success = bool(info["success"])
        self._failure = str(info["failure"])
        x, y, z = state.tcp_position_m
        if self._movable_first is None and z < _TRIED_BELOW_M:
            nearest = min(
                state.scene.objects,
                key=lambda item: (item.position_m[0] - x) ** 2 + (item.position_m[1] - y) ** 2,
            )
            self._movable_first = nearest.movable

    def outcome(self) -> EpisodeOutcome:
        failure = "" if self._success else self._failure or "time ran out"
        return EpisodeOutcome(self._seed, self._steps, self._success, failure, self._movable_first)
