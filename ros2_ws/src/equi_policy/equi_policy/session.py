# SPDX-License-Identifier: MIT
"""One episode of a recurrent policy as a state machine over observations and executed commands.

The recurrent state belongs to an episode id. It advances exactly once per step, on the first fresh
observation that was taken after the last command was executed; a repeated, skipped, stale or
foreign observation is refused with a reason and changes nothing. The action fed back to the policy
is the one that the driver reports as executed, never the requested one; a step that the driver
rejected never happened, so the state before it is restored and the step is decided again.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from equi_core.action import MetricDelta, decode, encode
from equi_core.contract import PolicyContract
from equi_core.setting_fields import setting

FloatImage = NDArray[np.float32]
State = TypeVar("State")


class RecurrentPolicy(Protocol[State]):
    """What a session needs of a policy: explicit state in, explicit state out."""

    contract: PolicyContract

    def initial_state(self) -> State:
        """State at the start of an episode."""

    def step(self, observation: FloatImage, state: State) -> Any:
        """One step; the result has action (5,), state, std (5,) and state_norm."""


class Refusal(str, Enum):
    """Why an observation was not acted on. Values are stable: they are published."""

    NO_EPISODE = "no_episode"
    FOREIGN_EPISODE = "foreign_episode"
    FOREIGN_CONTRACT = "foreign_contract"
    STALE = "stale"
    FUTURE = "future"
    REPEATED = "repeated"
    AWAITING_EXECUTION = "awaiting_execution"
    SKIPPED = "skipped"
    BEFORE_EXECUTION = "before_execution"
    MALFORMED = "malformed"
    BAD_ACTION = "bad_action"
    FINISHED = "finished"


EXPECTED_REFUSALS = frozenset({Refusal.REPEATED, Refusal.AWAITING_EXECUTION})
"""Perception publishes faster than the arm steps, so these two come all the time."""


@dataclass(frozen=True)
class SessionLimits:
    """How old an observation may be when the policy acts on it [s]."""

    max_observation_age_s: float = setting(0.6, low=0.0, high=60.0)
    """Older observations are not acted on."""
    max_future_s: float = setting(0.05, low=0.0, high=60.0)
    """Stamps may run ahead of this machine's clock by this much."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"session limit '{name}' is {value}; it must be positive")


@dataclass(frozen=True, eq=False)
class ReceivedObservation:
    """An observation as it arrived."""

    episode_id: str
    step_index: int
    sequence: int
    stamp_ns: int
    contract_sha256: str
    image: FloatImage


@dataclass(frozen=True)
class ExecutedStep:
    """What the driver did with a command."""

    episode_id: str
    step_index: int
    delta: MetricDelta
    moved: bool
    """False if the command was rejected: then nothing happened and the delta says nothing."""
    end_ns: int


@dataclass(frozen=True, eq=False)
class Act:
    """The policy decided: send this."""

    episode_id: str
    step_index: int
    observation: ReceivedObservation
    policy_action: NDArray[np.float32]
    """(5,) in [-1, 1]."""
    delta: MetricDelta
    std: NDArray[np.float32]
    state_norm: float


@dataclass(frozen=True)
class Refused:
    """The observation was not used; the recurrent state is unchanged."""

    reason: Refusal
    message: str

    def __str__(self) -> str:
        return f"{self.reason.value}: {self.message}"


@dataclass(frozen=True, eq=False)
class _Running(Generic[State]):
    episode_id: str
    state: State
    next_step: int = 0
    awaiting: int | None = None
    """Step whose execution has not been reported yet."""
    executed_ns: int = -1
    """When the last executed step ended; an older image shows the world before it."""
    last_sequence: int = -1
    previous_state: State | None = None
    """State before the step under way, restored if the step is rejected."""
    rejected: int = 0
    """Commands rejected in a row."""


class PolicySession(Generic[State]):
    """Carries one policy through episodes; `offer` is the only way to make it act."""

    def __init__(self, policy: RecurrentPolicy[State], limits: SessionLimits | None = None) -> None:
        self.policy = policy
        self.limits = limits or SessionLimits()
        self._contract_sha256 = policy.contract.sha256
        self._running: _Running[State] | None = None

    @property
    def episode_id(self) -> str:
        """The running episode; empty if none."""
        return "" if self._running is None else self._running.episode_id

    @property
    def steps(self) -> int:
        """Commands whose execution was reported in this episode."""
        running = self._running
        if running is None:
            return 0
        return running.next_step - (0 if running.awaiting is None else 1)

    @property
    def awaiting_execution(self) -> bool:
        """Whether a command is under way."""
        return self._running is not None and self._running.awaiting is not None

    @property
    def rejected_in_a_row(self) -> int:
        """How often the driver has rejected the present step."""
        return 0 if self._running is None else self._running.rejected

    @property
    def state(self) -> State | None:
        """The policy's recurrent state, for logs and replay; None outside an episode."""
        return None if self._running is None else self._running.state

    def begin(self, episode_id: str) -> None:
        """Start an episode from the initial state; the same id again changes nothing."""
        if not episode_id:
            raise ValueError("episode_id is empty; give the episode a name")
        if self.episode_id != episode_id:
            self._running = _Running(episode_id, self.policy.initial_state())

    def end(self) -> None:
        """Forget the episode; observations are refused until the next one begins."""
        self._running = None

    def offer(self, observation: ReceivedObservation, now_ns: int) -> Act | Refused:
        """Act on an observation, or say why not. The state advances only when it acts."""
        running = self._running
        if running is None:
            return Refused(Refusal.NO_EPISODE, "no episode is running; call reset_episode")
        refused = self._refusal(observation, running, now_ns)
        if refused is not None:
            return refused
        try:
            result = self.policy.step(observation.image, running.state)
        except ValueError as error:
            return Refused(Refusal.MALFORMED, str(error))
        action = np.asarray(result.action, dtype=np.float32)
        if action.shape != (5,) or not np.isfinite(action).all():
            return Refused(
                Refusal.BAD_ACTION,
                f"the policy answered {action.tolist()}; its weights are damaged: export again",
            )
        self._running = dataclasses.replace(
            running,
            state=result.state,
            previous_state=running.state,
            next_step=observation.step_index + 1,
            awaiting=observation.step_index,
            last_sequence=observation.sequence,
        )
        return Act(
            episode_id=running.episode_id,
            step_index=observation.step_index,
            observation=observation,
            policy_action=action,
            delta=decode(action, self.policy.contract.action),
            std=np.asarray(result.std, dtype=np.float32),
            state_norm=float(result.state_norm),
        )

    def executed(self, step: ExecutedStep) -> bool:
        """Feed back what was really done; False if it belongs to another episode or step."""
        running = self._running
        if (
            running is None
            or step.episode_id != running.episode_id
            or step.step_index != running.awaiting
        ):
            return False
        if not step.moved:
            # The step never happened: drop it, and decide again on the next observation.
            self._running = dataclasses.replace(
                running,
                state=running.state if running.previous_state is None else running.previous_state,
                previous_state=None,
                next_step=step.step_index,
                awaiting=None,
                executed_ns=step.end_ns,
                rejected=running.rejected + 1,
            )
            return True
        action = encode(step.delta, self.policy.contract.action)
        state: Any = running.state
        self._running = dataclasses.replace(
            running,
            state=state.with_executed(action),
            previous_state=None,
            awaiting=None,
            executed_ns=step.end_ns,
            rejected=0,
        )
        return True

    def _refusal(
        self, observation: ReceivedObservation, running: _Running[State], now_ns: int
    ) -> Refused | None:
        if observation.episode_id != running.episode_id:
            return Refused(
                Refusal.FOREIGN_EPISODE,
                f"observation of episode '{observation.episode_id}', "
                f"but '{running.episode_id}' is running",
            )
        contract = self.policy.contract
        if observation.contract_sha256 != self._contract_sha256:
            return Refused(
                Refusal.FOREIGN_CONTRACT,
                f"image made for contract {observation.contract_sha256[:12]}..., this policy's is "
                f"{self._contract_sha256[:12]}...; start perception with the same model",
            )
        age_s = (now_ns - observation.stamp_ns) / 1e9
        if age_s > self.limits.max_observation_age_s:
            return Refused(
                Refusal.STALE,
                f"observation is {age_s:.2f} s old, at most "
                f"{self.limits.max_observation_age_s:.2f} s is allowed",
            )
        if age_s < -self.limits.max_future_s:
            return Refused(Refusal.FUTURE, f"observation is {-age_s:.2f} s ahead of the clock")
        if (
            observation.step_index < running.next_step
            or observation.sequence <= running.last_sequence
        ):
            return Refused(Refusal.REPEATED, f"step {observation.step_index} was decided already")
        if running.awaiting is not None:
            return Refused(
                Refusal.AWAITING_EXECUTION,
                f"step {running.awaiting} has not been reported as executed",
            )
        if observation.step_index > running.next_step:
            return Refused(
                Refusal.SKIPPED,
                f"observation of step {observation.step_index}, expected {running.next_step}: "
                "somebody else moves the arm; end this episode",
            )
        if observation.stamp_ns < running.executed_ns:
            return Refused(
                Refusal.BEFORE_EXECUTION, "the image was taken before the last step ended"
            )
        if observation.step_index >= contract.max_steps:
            return Refused(Refusal.FINISHED, f"{contract.max_steps} steps are done")
        return None
