# SPDX-License-Identifier: MIT
"""Rollouts: an expert demonstrates, or a policy acts while an expert may label its states.

The recurrent policy is fed the action that was executed, not the one it requested; both are
recorded, and the simulator's state beside them. An expert that labels is asked at every state
which the policy reaches and keeps its own memory along that path, so it can also take over and show
how to continue from there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equi_core.contract import ACTION_ORDER
from equi_rl.agents.acting_policy import Policy
from equi_rl.data.episode import Episode, EpisodeRecorder
from equi_rl.envs import HiddenPropertyEnv
from equi_rl.envs.privileged_state import PrivilegedStateTracker, StateFrame
from equi_rl.experts import Expert
from equi_rl.sim.scene import WorldState

_SHARE_WITHOUT_NOISE = 0.15
_CORRELATIONS = (0.0, 0.5)
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


@dataclass(frozen=True)
class Exploration:
    """Noise on a policy's mean action in one episode, in policy units."""

    std: float
    """Standard deviation of the noise of a step."""
    correlation: float
    """Between the noise of one step and the next."""

    @classmethod
    def drawn(cls, most_std: float, rng: np.random.Generator) -> Exploration:
        """For one episode of many: some noise of every strength below a limit, and of two kinds.

        A share goes without noise, so that what the mean itself achieves is seen as well.
        """
        if rng.random() < _SHARE_WITHOUT_NOISE:
            return cls(0.0, 0.0)
        return cls(float(rng.uniform(0.0, most_std)), float(rng.choice(_CORRELATIONS)))

    def following(
        self, noise: NDArray[np.float32], rng: np.random.Generator
    ) -> NDArray[np.float32]:
        """Noise of unit variance for the next step, after this one's."""
        fresh = rng.standard_normal(len(noise)).astype(np.float32)
        mixed = self.correlation * noise + math.sqrt(1.0 - self.correlation**2) * fresh
        return mixed.astype(np.float32)


def play_expert(
    env: HiddenPropertyEnv,
    expert: Expert,
    seed: int,
    *,
    state_frame: StateFrame = StateFrame.SCENE,
) -> tuple[Episode, EpisodeOutcome]:
    """One demonstration on the scene of `seed`; the expert's coin comes from the same seed."""
    observation, _ = env.reset(seed=seed)
    recorder = EpisodeRecorder(observation)
    privileged = PrivilegedStateTracker(env.contract.workspace.centre_xy_m, state_frame)
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
    policy: Policy,
    seed: int,
    *,
    rng: np.random.Generator | None = None,
    expert: Expert | None = None,
    expert_takeover_at: int | None = None,
    exploration: Exploration | None = None,
    state_frame: StateFrame = StateFrame.SCENE,
) -> tuple[Episode, EpisodeOutcome]:
    """One episode of a policy on the scene of `seed`.

    Args:
        env: environment.
        policy: what acts.
        seed: of the scene, and of the policy's state before it if that is random.
        rng: draws random actions; None plays the policy's mean.
        expert: labels every state with the action that it would take; None: no labels.
        expert_takeover_at: step from which on the expert acts itself; None: never.
        exploration: with `rng`, noise that is added to the policy's mean; None draws actions from
            the policy itself.
        state_frame: of the recorded state of the simulator.
    """
    if expert_takeover_at is not None and expert is None:
        raise ValueError(
            f"expert_takeover_at is {expert_takeover_at}; it must be None without an expert"
        )
    observation, _ = env.reset(seed=seed)
    recorder = EpisodeRecorder(observation)
    privileged = PrivilegedStateTracker(env.contract.workspace.centre_xy_m, state_frame)
    recorder.add_privileged(*privileged.observe(env.state()))
    tracker = _OutcomeTracker(seed)
    state = policy.start(seed)
    executed = np.zeros(len(ACTION_ORDER), dtype=np.float32)
    noise = np.zeros_like(executed)
    if exploration is not None and rng is not None:
        noise = rng.standard_normal(len(noise)).astype(np.float32)
    memory = None
    if expert is not None:
        memory = expert.start(env.state(), np.random.default_rng(seed))
    while True:
        if exploration is None or rng is None:
            action, state = policy.act(observation, executed, state, rng)
        else:
            action, state = policy.act(observation, executed, state)
            noise = exploration.following(noise, rng)
            action = np.clip(action + exploration.std * noise, -1.0, 1.0)
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


def play_random(
    env: HiddenPropertyEnv, seed: int, *, state_frame: StateFrame = StateFrame.SCENE
) -> tuple[Episode, EpisodeOutcome]:
    """One episode of uniformly random actions on the scene of `seed`."""
    observation, _ = env.reset(seed=seed)
    recorder = EpisodeRecorder(observation)
    privileged = PrivilegedStateTracker(env.contract.workspace.centre_xy_m, state_frame)
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
