# SPDX-License-Identifier: MIT
"""Recurrent soft actor-critic for any gymnasium environment with continuous actions.

    import gymnasium
    from equi_rl.recurrent_sac.agent import RecurrentSac
    from equi_rl.recurrent_sac.config import RecurrentSacConfig

    agent = RecurrentSac(gymnasium.make("equi/MaskedPendulum-v0"), RecurrentSacConfig(seed=1))
    agent.learn(20_000)
    print(agent.evaluate(episodes=20).mean_return)

The update is the one that trains the robot's policies (`equi_rl.agents.sac`), over packed whole
episodes or pieces of them. What differs is the environment's side: observations are arrays, actions
are scaled to the environment's own range, and nothing is known about success.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save
from torch import Tensor

from equi_rl.agents.learner import require_finite
from equi_rl.agents.sac import SacUpdate
from equi_rl.data.array_episode import ArrayEpisode, pack_arrays
from equi_rl.data.atomic_file import write_atomically
from equi_rl.data.replay_buffer import EpisodeReplayBuffer
from equi_rl.nets import dense
from equi_rl.nets.checkpoint import parameters_of, restore_parameters
from equi_rl.nets.distributions import sample, squash
from equi_rl.nets.memories import LstmState
from equi_rl.nets.networks import Actor, ActorWeights, Critic, initial_state
from equi_rl.recurrent_sac.config import RecurrentSacConfig, Symmetry

_ONE = torch.ones(1, dtype=torch.int64)
_WEIGHTS_FILE, _CONFIG_FILE = "agent.safetensors", "agent.json"
EVALUATION_SEED = 1_000_000
"""First seed of evaluation episodes; training uses seeds below."""


@dataclass(frozen=True)
class AgentState:
    """What the agent carries from step to step of an episode; never changed in place."""

    memory: LstmState
    previous_action: Tensor
    """(A,) action executed last, in [-1, 1]; zeros before the first step."""


@dataclass(frozen=True)
class EpisodeReport:
    """One episode of training."""

    steps: int
    """Steps of the environment so far, this episode included."""
    episode_return: float
    metrics: dict[str, float]
    """Of the last update after it; empty while actions are random."""


@dataclass(frozen=True)
class Score:
    """Returns of evaluation episodes with the policy's mean action."""

    returns: tuple[float, ...]
    successes: int
    """Episodes whose last `info["success"]` was true; 0 where the environment does not say."""

    @property
    def mean_return(self) -> float:
        """Mean of the returns."""
        return float(np.mean(self.returns))


class RecurrentSac:
    """An agent with its networks, replay buffer and environment.

    Args:
        env: environment with a Box of continuous actions and a Box of vectors (C,) or square
            images (C, S, S) as observations.
        config: hyper-parameters.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], config: RecurrentSacConfig | None = None
    ) -> None:
        self.env = env
        self.config = config or RecurrentSacConfig()
        low, high = _action_range(env.action_space)
        self._centre, self._half_range = (high + low) / 2.0, (high - low) / 2.0
        if not isinstance(env.observation_space, gymnasium.spaces.Box):
            raise ValueError(
                f"the observation space is {env.observation_space}; recurrent SAC needs a Box of"
                " numbers; flatten it with gymnasium.wrappers.FlattenObservation"
            )
        self._pixel_scale = 255.0 if env.observation_space.dtype == np.uint8 else 1.0
        n_actions = len(self._centre)
        torch.manual_seed(self.config.seed)
        self._generator = torch.Generator().manual_seed(self.config.seed)
        self._rng = np.random.default_rng(self.config.seed)
        network = self.config.network(env.observation_space.shape, n_actions)
        self.actor, self.critic = Actor(network), Critic(network)
        self._sac = SacUpdate(self.actor, self.critic, self.config.sac_settings(n_actions))
        self._parameters = [dict(net.named_parameters()) for net in (self.actor, self.critic)]
        self.replay_buffer: EpisodeReplayBuffer[ArrayEpisode] = EpisodeReplayBuffer(
            self.config.replay_capacity
        )
        self.steps = 0
        self._updates_due = 0.0
        self._weights = self._snapshot()

    # Learning -----------------------------------------------------------------------------------

    def learn(self, steps: int, report: Callable[[EpisodeReport], None] | None = None) -> None:
        """Play and learn for at least ``steps`` more steps; whole episodes are played to their end.

        Raises DivergedError if a loss or weight is no longer finite.
        """
        end = self.steps + steps
        while self.steps < end:
            episode = self._play()
            self.replay_buffer.add(episode)
            self.steps += len(episode)
            metrics: dict[str, float] = {}
            if self.steps > self.config.random_steps:
                self._updates_due += len(episode) * self.config.updates_per_step
                while self._updates_due >= 1.0:
                    metrics = self.update()
                    self._updates_due -= 1.0
                self._weights = self._snapshot()
            if report is not None:
                report(EpisodeReport(self.steps, float(episode.reward.sum()), metrics))

    def update(self) -> dict[str, float]:
        """One update of critic, actor, temperature and target from a batch of the buffer."""
        episodes = self.replay_buffer.sample(self.config.batch_episodes, self._rng)
        longest = self.config.sequence_steps
        if longest:
            episodes = [self._piece(episode, longest) for episode in episodes]
        metrics = self._sac.step(pack_arrays(episodes), self._generator)
        require_finite(metrics, *self._parameters)
        return metrics

    # Acting -------------------------------------------------------------------------------------

    def start(self) -> AgentState:
        """State before the first observation of an episode."""
        return AgentState(initial_state(self.actor.config, 1), torch.zeros(len(self._centre)))

    def act(
        self,
        observation: NDArray[Any],
        state: AgentState,
        rng: np.random.Generator | None = None,
    ) -> tuple[NDArray[np.float32], AgentState]:
        """Action in the environment's range, and the state after this observation.

        Args:
            observation: (C,) or (C, S, S), as the environment returned it.
            state: before this observation; `start()` at the beginning of an episode.
            rng: draws a random action of the policy; None takes its mean.
        """
        action, memory = self._decide(observation, state, rng)
        return self._to_env(action.numpy()), AgentState(memory, action)

    def evaluate(self, episodes: int, seed: int = EVALUATION_SEED) -> Score:
        """Play episodes with the mean action; episode i starts from seed + i."""
        returns, successes = [], 0
        for index in range(episodes):
            observation, info = self.env.reset(seed=seed + index)
            state, total, ended = self.start(), 0.0, False
            while not ended:
                action, state = self.act(observation, state)
                observation, reward, terminated, truncated, info = self.env.step(action)
                state = self._after(state, info)
                total += float(reward)
                ended = terminated or truncated
            returns.append(total)
            successes += bool(info.get("success", False))
        return Score(tuple(returns), successes)

    # Files --------------------------------------------------------------------------------------

    def save(self, folder: Path | str) -> None:
        """Write networks and settings (safetensors and JSON); the replay buffer stays behind."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tensors = parameters_of(self.actor, "actor") | parameters_of(self.critic, "critic")
        write_atomically(folder / _WEIGHTS_FILE, save(tensors))
        plain = dataclasses.asdict(self.config)
        write_atomically(folder / _CONFIG_FILE, json.dumps(plain, indent=2).encode())

    @classmethod
    def load(cls, folder: Path | str, env: gymnasium.Env[Any, Any]) -> RecurrentSac:
        """The agent that `save` wrote, for an environment of the same spaces."""
        folder = Path(folder)
        plain = json.loads((folder / _CONFIG_FILE).read_text(encoding="utf-8"))
        if plain["symmetry"] is not None:
            plain["symmetry"] = Symmetry(**plain["symmetry"])
        for name in ("encoder_channels", "head_channels"):
            plain[name] = tuple(plain[name])
        agent = cls(env, RecurrentSacConfig(**plain))
        tensors = load((folder / _WEIGHTS_FILE).read_bytes())
        restore_parameters(agent.actor, tensors, "actor")
        restore_parameters(agent.critic, tensors, "critic")
        agent._weights = agent._snapshot()
        return agent

    # Inside -------------------------------------------------------------------------------------

    def _play(self) -> ArrayEpisode:
        """One episode with random actions of the policy, uniform ones at first."""
        seed = int(self._rng.integers(EVALUATION_SEED))
        observation, _ = self.env.reset(seed=seed)
        frames, state, ended = [np.asarray(observation)], self.start(), False
        requested: list[NDArray[np.float32]] = []
        executed: list[NDArray[np.float32]] = []
        rewards: list[float] = []
        terminated = False
        while not ended:
            if self.steps + len(rewards) < self.config.random_steps:
                action = self._rng.uniform(-1.0, 1.0, len(self._centre)).astype(np.float32)
                state = dataclasses.replace(state, previous_action=torch.from_numpy(action))
            else:
                decided, memory = self._decide(frames[-1], state, self._rng)
                action, state = decided.numpy(), AgentState(memory, decided)
            observation, reward, terminated, truncated, info = self.env.step(self._to_env(action))
            state = self._after(state, info)
            frames.append(np.asarray(observation))
            requested.append(action)
            executed.append(state.previous_action.numpy())
            rewards.append(float(reward))
            ended = terminated or truncated
        return ArrayEpisode(
            np.stack(frames) / np.float32(self._pixel_scale),
            np.stack(requested),
            np.stack(executed),
            np.array(rewards, dtype=np.float32),
            bool(terminated),
        )

    def _decide(
        self, observation: NDArray[Any], state: AgentState, rng: np.random.Generator | None
    ) -> tuple[Tensor, LstmState]:
        """Action (A,) in [-1, 1] and the memory after this observation."""
        config, weights = self.actor.config, self._weights
        with torch.inference_mode():
            seen = np.asarray(observation, dtype=np.float32) / np.float32(self._pixel_scale)
            frames = dense.prepare_arrays(config, torch.from_numpy(seen)[None])
            features = dense.encode(config, weights.history.encoder, frames)
            previous = state.previous_action[None]
            history, memory = dense.run_history(
                config, weights.history, features, previous, _ONE, state.memory
            )
            mean, log_std = dense.actor_outputs(config, weights, history)
            if rng is None:
                action = squash(mean, config.squash)
            else:
                noise = rng.standard_normal(mean.shape).astype(np.float32)
                action, _ = sample(mean, log_std, torch.from_numpy(noise), config.squash)
        return action[0].clone(), memory

    def _after(self, state: AgentState, info: dict[str, Any]) -> AgentState:
        """The state with the action that was executed, where the environment says which."""
        if "executed_action" not in info:
            return state
        executed = np.asarray(info["executed_action"], dtype=np.float32)
        scaled = ((executed - self._centre) / self._half_range).astype(np.float32)
        return dataclasses.replace(state, previous_action=torch.from_numpy(scaled))

    def _to_env(self, action: NDArray[np.float32]) -> NDArray[np.float32]:
        return (self._centre + self._half_range * action).astype(np.float32)

    def _piece(self, episode: ArrayEpisode, longest: int) -> ArrayEpisode:
        start = int(self._rng.integers(max(1, len(episode) - longest + 1)))
        return episode.window(start, longest)

    def _snapshot(self) -> ActorWeights:
        with torch.no_grad():
            weights: ActorWeights = dense.map_tensors(self.actor.dense(), torch.clone)
        return weights


def _action_range(space: gymnasium.Space[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise ValueError(f"the action space is {space}; recurrent SAC needs a Box of one dimension")
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise ValueError(
            f"the action space is {space}; its bounds must be finite, so that actions can be"
            " scaled; wrap the environment with gymnasium.wrappers.RescaleAction"
        )
    return space.low.astype(np.float32), space.high.astype(np.float32)
