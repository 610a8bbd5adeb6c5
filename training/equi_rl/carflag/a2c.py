# SPDX-License-Identifier: MIT
"""Recurrent advantage actor-critic (A2C), for several independent learners at once.

One update of one learner, in the order of the code:

    play T steps in N worlds        a_t ~ pi(. | h_t),  h_t = memory(h_{t-1}, o_t)
    returns                         R_t = r_t + gamma (1 - terminated_t) R'_{t+1},  R'_T = V(h_T)
      mixed with values             R'_t = lambda R_t + (1 - lambda) V(h_t);  n-step if lambda = 1
      a time-out ends the sum with  R'_{t+1} = V(h after its last observation), or 0 if so set
    advantages                      A_t = R_t - V(h_t)          (no gradient through A_t)
      if so set, over the rollout   A_t <- (A_t - mean A) / std A
    loss                            mean[ -A_t log pi(a_t|h_t) + c_v (R_t - V(h_t))^2 - c_e H(pi) ]
    clip the gradient's norm, RMSprop

The recurrent part runs once per step: what chose the actions is recorded (see `memories`) and
differentiated, since on-policy data is used once, with the weights that produced it. The encoder
of the 2-D world runs once per distinct image (see `encoder_cache`). The memory's state crosses
update boundaries without its gradient (truncated back-propagation through T steps).

Defaults are those common in A2C implementations, except where a field says that it was tuned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from equi_rl.carflag.encoder_cache import EncoderCache
from equi_rl.carflag.memories.memory import Memory, Recording
from equi_rl.carflag.policy import GridPolicy, Weights
from equi_rl.carflag.vector import VectorStep, make_vector
from equi_rl.carflag.worlds import STEP_LIMIT, World

_LEAST_DEVIATION = 1e-5  # of advantages; a rollout without any difference must not divide by zero


class A2CError(ValueError):
    """An A2C setting that makes no sense."""


@dataclass(frozen=True)
class A2CConfig:
    """Hyper-parameters, the same for the equivariant and the plain agent."""

    envs: int = 16  # parallel worlds of one learner, N
    rollout_steps: int = 50  # T; tuned, commonly 5: the reward comes 25 steps after the hint
    discount: float = 0.99  # gamma
    learning_rate: float = 3e-3  # tuned, commonly 7e-4: ten times fewer updates per step
    rms_decay: float = 0.99
    rms_epsilon: float = 1e-5
    rms_correction: bool = False  # of the running mean for its start at zero
    gae_lambda: float = 1.0  # lambda; below 1 the critic's values bound the noise of later steps
    value_weight: float = 0.5  # c_v
    entropy_weight: float = 0.01  # c_e
    max_gradient_norm: float = 0.5
    normalise_advantages: bool = (
        False  # where rewards are rare, or the entropy bonus outweighs them
    )
    forget_bias: float = 1.0  # of the LSTM at the start
    bootstrap_time_outs: bool = True  # value what a cut-off episode would still have earned

    def __post_init__(self) -> None:
        for name in ("envs", "rollout_steps", "learning_rate", "rms_epsilon", "max_gradient_norm"):
            if getattr(self, name) <= 0:
                raise A2CError(f"{name} = {getattr(self, name)} must be positive")
        for name in ("discount", "gae_lambda"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise A2CError(f"{name} = {getattr(self, name)} must lie in [0, 1]")
        if not 0.0 <= self.rms_decay < 1.0:
            raise A2CError(f"rms_decay = {self.rms_decay} must lie in [0, 1)")
        for name in ("value_weight", "entropy_weight"):
            if getattr(self, name) < 0:
                raise A2CError(f"{name} = {getattr(self, name)} must not be negative")

    @property
    def steps_per_update(self) -> int:
        """Environment steps that one learner takes per update."""
        return self.envs * self.rollout_steps


class Evaluation(NamedTuple):
    """Result of whole greedy episodes; each array (learners,)."""

    success: np.ndarray  # share of episodes that reached the goal
    undiscounted_return: np.ndarray
    length: np.ndarray  # mean steps


class UpdateLog(NamedTuple):
    """What one update tells; each array (learners,)."""

    episodes: np.ndarray  # training episodes that ended
    successes: np.ndarray  # of these, how many at the goal
    entropy: np.ndarray  # mean entropy of the policy [nat]
    value_loss: np.ndarray  # mean squared error of the critic
    gradient_norm: np.ndarray  # before clipping


class _Rollout(NamedTuple):
    """T steps of all learners, time first; numbers without a graph."""

    observations: list[np.ndarray]  # (L, N, ...)
    actions: np.ndarray  # (T, L, N) int64
    steps: list[VectorStep]
    recording: Recording
    time_out_values: np.ndarray  # (T, L, N): V after a time-out, 0 elsewhere
    next_value: np.ndarray  # (L, N): V(h_T)


class A2CLearners:
    """Independent learners, one per seed, that play and update in lockstep."""

    def __init__(
        self,
        world: World,
        *,
        equivariant: bool,
        config: A2CConfig,
        seeds: tuple[int, ...],
        memory: Memory | None = None,
    ) -> None:
        self.config = config
        self.world = world
        self.seeds = seeds
        self.policy = GridPolicy(world, equivariant=equivariant, memory=memory)
        self.memory = self.policy.memory
        streams = [np.random.SeedSequence(seed).spawn(3) for seed in seeds]
        init, play, act = (
            [np.random.default_rng(stream[i]) for stream in streams] for i in range(3)
        )
        self.parameters = self.policy.initial_parameters(init, config.forget_bias)
        self.mean_square = torch.zeros_like(self.parameters)  # of gradients
        self.action_generators = act
        self.envs = make_vector(world, config.envs, play)
        self.observation = self.envs.reset()
        self.state = self.policy.initial_state(len(seeds), config.envs)
        self.updates = 0

    @property
    def steps(self) -> int:
        """Environment steps taken so far by each learner."""
        return self.updates * self.config.steps_per_update

    def update(self) -> UpdateLog:
        """Play T steps, then change the weights once."""
        dense = self.policy.expand(self.parameters).requires_grad_()
        weights = self.policy.weights(dense)
        cache = self._encoder_cache(weights)
        rollout = self._play(weights, cache)
        logits, values = self._differentiable(weights, cache, rollout)
        returns = self._returns(rollout, values.detach().numpy())
        advantages = self._advantages(returns, values.detach())
        log_policy = logits.log_softmax(dim=-1)
        actions = torch.from_numpy(rollout.actions).unsqueeze(-1)
        chosen = log_policy.gather(-1, actions).squeeze(-1)
        entropy = -(log_policy.exp() * log_policy).sum(dim=-1)
        squared_error = (returns - values).square()
        loss = (
            -advantages * chosen
            + self.config.value_weight * squared_error
            - self.config.entropy_weight * entropy
        )
        # Learners share no weights, so the sum over them keeps their gradients apart.
        total = loss.mean(dim=(0, 2)).sum()
        (gradient,) = torch.autograd.grad(total, dense)
        norm = self._descend(self.policy.pull_back(gradient))
        self.updates += 1
        ended = np.stack([step.terminated | step.truncated for step in rollout.steps])
        return UpdateLog(
            episodes=ended.sum(axis=(0, 2)),
            successes=np.stack([step.success for step in rollout.steps]).sum(axis=(0, 2)),
            entropy=entropy.detach().mean(dim=(0, 2)).numpy(),
            value_loss=squared_error.detach().mean(dim=(0, 2)).numpy(),
            gradient_norm=norm.numpy(),
        )

    @torch.no_grad()
    def evaluate(self, episodes: int, seed: int) -> Evaluation:
        """Play whole episodes greedily in separate worlds with their own random numbers."""
        generators = [np.random.default_rng((seed, own)) for own in self.seeds]
        random = [np.random.default_rng((seed, own, 1)) for own in self.seeds]
        envs = make_vector(self.world, episodes, generators)
        weights = self.policy.weights(self.policy.expand(self.parameters))
        cache = self._encoder_cache(weights)
        state = self.policy.initial_state(len(self.seeds), episodes)
        observation = envs.reset()
        running = np.ones(envs.shape, dtype=bool)
        success = np.zeros(envs.shape, dtype=bool)
        total, length = np.zeros(envs.shape), np.zeros(envs.shape)
        for _ in range(STEP_LIMIT):
            embedding = self._embed(weights, cache, observation)
            noise = self.memory.draw_noise(random, episodes)
            state = self.memory.recur(weights, embedding, state, noise)
            logits = self.policy.logits(weights, self.memory.output(weights, state))
            step = envs.step(logits.numpy().argmax(axis=-1))
            total += running * step.reward
            length += running
            success |= running & step.success
            running &= ~(step.terminated | step.truncated)
            observation = step.observation  # worlds that restart are no longer counted
            if not running.any():
                break
        return Evaluation(success.mean(axis=1), total.mean(axis=1), length.mean(axis=1))

    def _encoder_cache(self, weights: Weights) -> EncoderCache | None:
        """A cache for one rollout, if the world has an image encoder."""
        if not self.policy.has_encoder:
            return None
        return EncoderCache(self.policy, weights, len(self.seeds))

    def _embed(
        self, weights: Weights, cache: EncoderCache | None, observation: np.ndarray
    ) -> Tensor:
        if cache is None:
            return self.policy.embed(weights, torch.from_numpy(observation))
        return cache.lookup(observation)

    @torch.no_grad()
    def _play(self, weights: Weights, cache: EncoderCache | None) -> _Rollout:
        """T steps in every world with sampled actions; leaves the state after the last of them."""
        config = self.config
        # argmax(logits + Gumbel noise) is a sample of the softmax; drawn at once for the rollout.
        shape = (config.rollout_steps, config.envs, self.world.NUM_ACTIONS)
        noise = np.stack([g.gumbel(size=shape) for g in self.action_generators], axis=1)
        recording = self.memory.record()
        observations, actions, steps = [], [], []
        for time in range(config.rollout_steps):
            embedding = self._embed(weights, cache, self.observation)
            random = self.memory.draw_noise(self.action_generators, config.envs)
            self.state = recording.step(weights, embedding, self.state, random)
            logits = self.policy.logits(weights, self.memory.output(weights, self.state))
            action = (logits.numpy() + noise[time]).argmax(axis=-1)
            step = self.envs.step(action)
            observations.append(self.observation)
            actions.append(action)
            steps.append(step)
            ended = step.terminated | step.truncated
            if ended.any():
                self.state = recording.end_episodes(torch.from_numpy(~ended).unsqueeze(-1))
            self.observation = step.observation
        embedding = self._embed(weights, cache, self.observation)
        after = self.memory.recur(weights, embedding, self.state)
        return _Rollout(
            observations=observations,
            actions=np.stack(actions),
            steps=steps,
            recording=recording,
            time_out_values=self._time_out_values(weights, cache, steps, recording.after),
            next_value=self._values(weights, after),
        )

    def _differentiable(
        self, weights: Weights, cache: EncoderCache | None, rollout: _Rollout
    ) -> tuple[Tensor, Tensor]:
        """What was played as a function of the weights: logits (T, L, N, A), values (T, L, N)."""
        learner_first = (len(self.seeds), self.config.rollout_steps, self.config.envs, -1)
        if cache is None:
            seen = torch.from_numpy(np.concatenate(rollout.observations, axis=1))
            embeddings = self.policy.embed(weights, seen)
        else:
            embeddings = cache.embed_seen(weights, self.config.rollout_steps)
        embeddings = embeddings.view(learner_first).transpose(0, 1)
        remembered = rollout.recording.outputs(weights, embeddings)
        logits, values = self.policy.heads(weights, remembered.transpose(0, 1).flatten(1, 2))
        return logits.view(learner_first).transpose(0, 1), values.view(learner_first[:3]).transpose(
            0, 1
        )

    @torch.no_grad()
    def _time_out_values(
        self,
        weights: Weights,
        cache: EncoderCache | None,
        steps: list[VectorStep],
        states: list[Any],
    ) -> np.ndarray:
        """V of the observation in which a cut-off episode ended: (T, L, N), 0 elsewhere."""
        cut = np.stack([step.truncated for step in steps], axis=1)  # L, T, N
        values = np.zeros(cut.shape, dtype=np.float32)
        most = int(cut.sum(axis=(1, 2)).max())
        if most and self.config.bootstrap_time_outs:
            # One batch for the whole rollout; learners with fewer time-outs repeat place (0, 0).
            learners = len(cut)
            places = np.zeros((learners, most, 2), dtype=np.int64)
            for learner, own in enumerate(cut):
                found = np.argwhere(own)
                places[learner, : len(found)] = found
            pick = (np.arange(learners)[:, None], places[..., 0], places[..., 1])
            final = np.stack([step.final_observation for step in steps], axis=1)[pick]
            before = type(states[0])(
                *(torch.stack(parts, dim=1)[pick] for parts in zip(*states, strict=True))
            )
            embedding = self._embed(weights, cache, final)
            values[pick] = self._values(weights, self.memory.recur(weights, embedding, before))
        return values.transpose(1, 0, 2) * cut.transpose(1, 0, 2)

    def _values(self, weights: Weights, state: Any) -> np.ndarray:
        """V (L, N) of states."""
        values: np.ndarray = self.policy.heads(weights, self.memory.output(weights, state))[
            1
        ].numpy()
        return values

    def _returns(self, rollout: _Rollout, values: np.ndarray) -> Tensor:
        """Returns R_t, (T, L, N), by the recursion in the module's head; ``values`` are V(h_t)."""
        value_share = 1.0 - self.config.gae_lambda
        next_values = rollout.next_value  # V(h_T) after the last step
        returns = np.empty(rollout.time_out_values.shape, dtype=np.float32)
        for time in reversed(range(self.config.rollout_steps)):
            step = rollout.steps[time]
            # A time-out ends the sum with the value of its last observation, or zero if so set.
            next_values = np.where(step.truncated, rollout.time_out_values[time], next_values)
            returns[time] = step.reward + self.config.discount * ~step.terminated * next_values
            next_values = returns[time] + value_share * (values[time] - returns[time])
        return torch.from_numpy(returns)

    def _advantages(self, returns: Tensor, values: Tensor) -> Tensor:
        """A_t of (T, L, N) returns and values; each learner's are normalised on their own."""
        advantages = returns - values
        if not self.config.normalise_advantages:
            return advantages
        deviation, mean = torch.std_mean(advantages, dim=(0, 2), keepdim=True)
        return (advantages - mean) / (deviation + _LEAST_DEVIATION)

    @torch.no_grad()
    def _descend(self, gradient: Tensor) -> Tensor:
        """Clip each learner's gradient (L, free), then one RMSprop step; returns the norms (L,)."""
        config = self.config
        norm = gradient.norm(dim=1, keepdim=True)
        gradient = gradient * (config.max_gradient_norm / (norm + 1e-6)).clamp(max=1.0)
        self.mean_square.lerp_(gradient.square(), 1.0 - config.rms_decay)
        # The running mean starts at zero: uncorrected, the first steps are ten times the learning
        # rate, which can saturate an LSTM for good.
        weight = 1.0 - config.rms_decay ** (self.updates + 1) if config.rms_correction else 1.0
        size = (self.mean_square / weight).sqrt() + config.rms_epsilon
        self.parameters.addcdiv_(gradient, size, value=-config.learning_rate)
        return norm.squeeze(1)
