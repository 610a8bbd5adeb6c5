# SPDX-License-Identifier: MIT
"""Players: processes that play episodes while this one learns.

An episode is a function of (weights, seed) and episodes come in the order of their seeds. So a run
is the same, to the bit, with one player or many, on this machine or on others, and if players die
on the way: their episodes are played again. The learner asks for a round of episodes with the
weights it has now, continues learning, and fetches the episodes when it needs them.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from equi_rl.agents.acting_policy import Policy
from equi_rl.cluster.pool import Batch, PoolError, WorkerPool
from equi_rl.cluster.process_worker import ProcessBackend
from equi_rl.cluster.worker import Worker, WorkerBackend
from equi_rl.data.episode import Episode
from equi_rl.envs import HiddenPropertyEnv, make_env
from equi_rl.envs.privileged_state import StateFrame
from equi_rl.envs.randomisation import DomainRandomisation
from equi_rl.experts import Expert, ExpertConfig, make_expert
from equi_rl.training.rollout import (
    EpisodeOutcome,
    Exploration,
    play_expert,
    play_policy,
    play_random,
)

Played = list[tuple[Episode, EpisodeOutcome]]


class CollectorError(RuntimeError):
    """The players cannot play; carries what they said."""


class PlayersOn(str, Enum):
    """Where players are."""

    LOCAL = "local"
    RAY = "ray"


@dataclass(frozen=True)
class Players:
    """How many play, and where; changes how long a run takes, never its result."""

    players: int = 1
    """Processes that play episodes, each on one core."""
    players_on: PlayersOn = PlayersOn.LOCAL
    """local: processes of this machine. ray: actors on any node of a Ray cluster."""
    address: str = "auto"
    """With ray: of the cluster. auto: the one that runs on this machine, or RAY_ADDRESS."""

    def __post_init__(self) -> None:
        if self.players < 1:
            raise CollectorError(f"players is {self.players}; it must be at least 1")

    def require_reachable(self) -> None:
        """Raise ClusterError if players are wanted on a cluster that cannot have them."""
        if self.players_on is PlayersOn.RAY:
            # An extra, imported when asked for.
            from equi_rl.cluster.ray_cluster import connect, require_cores

            require_cores(connect(self.address), self.players)


@dataclass(frozen=True)
class Demonstrate:
    """Ask for episodes of the expert."""

    seeds: tuple[int, ...]


@dataclass(frozen=True)
class PlayRandom:
    """Ask for episodes of uniformly random actions."""

    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Play:
    """Ask for episodes of a policy."""

    policy: Policy
    seeds: tuple[int, ...]
    stochastic: bool
    """Whether actions are drawn; the draws come from the episode's seed."""
    label_with_expert: bool
    """Whether the expert labels every state with the action that it would take."""
    expert_takeover_within: int = 0
    """The labelling expert takes over at a step drawn below this; 0: it never does."""
    exploration_std: float = 0.0
    """Positive: actions are not drawn from the policy; noise is added to its mean instead
    (`rollout.Exploration`)."""
    randomised: bool = True
    """Whether the collector's randomisation applies; evaluation goes without."""


@dataclass(frozen=True)
class CollectorConfig:
    """What the playing process needs to know."""

    task: str
    expert: ExpertConfig
    randomisation: DomainRandomisation | None = None
    """What varies between episodes played for training; None: nothing."""
    randomise_every: int = 2
    """It applies to the last of so many consecutive seeds; the others stay as they are."""
    env_options: tuple[tuple[str, Any], ...] = ()
    """Further keyword arguments of the environment."""
    state_frame: StateFrame = StateFrame.SCENE
    """Along which axes the simulator's state is recorded, for a critic that sees it."""


Work = Demonstrate | Play | PlayRandom


class Collector:
    """The players of a run; use it as a context manager."""

    def __init__(self, config: CollectorConfig, players: Players | None = None) -> None:
        players = players or Players()
        self._pool = WorkerPool(_backend(config, players), players.players)
        self._pending: deque[Batch] = deque()

    def request(self, work: Work) -> None:
        """Send a request; `fetch` returns its episodes later, in the order of the requests."""
        self._pending.append(self.start(work))

    def fetch(self) -> Played:
        """Episodes of the oldest request, in the order of its seeds; waits for them."""
        if not self._pending:
            raise CollectorError("nothing was requested")
        return self.finish(self._pending.popleft())

    def play(self, work: Work) -> Played:
        """Request and fetch at once."""
        if self._pending:
            raise CollectorError("fetch what was requested before playing something else")
        return self.finish(self.start(work))

    def start(self, work: Work, *, later: bool = False) -> Batch:
        """Have episodes played meanwhile; with `later`, when nothing else is to be played."""
        return self._pool.submit(dataclasses.replace(work, seeds=()), work.seeds, later=later)

    def finish(self, batch: Batch) -> Played:
        """The episodes of `start`, in the order of their seeds; waits for them."""
        try:
            return self._pool.wait(batch)
        except PoolError as error:
            raise CollectorError(f"a player failed: {error}") from None

    @property
    def players(self) -> list[Worker]:
        """Those that are alive now."""
        return self._pool.workers

    @property
    def restarts(self) -> int:
        """Players that died and were started again."""
        return self._pool.restarts

    def close(self) -> None:
        """End the players."""
        self._pool.close()

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _backend(config: CollectorConfig, players: Players) -> WorkerBackend:
    if players.players_on is PlayersOn.RAY:
        from equi_rl.cluster.ray_worker import RayBackend  # an extra, imported when asked for

        return RayBackend(Player, config, players.address)
    return ProcessBackend(Player, config)


class Player:
    """What a worker runs: one episode for a request and one of its seeds."""

    def __init__(self, config: CollectorConfig) -> None:
        import torch

        torch.set_num_threads(1)  # one core each
        self._config = config
        self._env = make_env(config.task, **dict(config.env_options))
        self._expert = make_expert(config.task, self._env.contract, config.expert)

    def __call__(self, work: Work, seed: int) -> tuple[Episode, EpisodeOutcome]:
        """One episode."""
        one = dataclasses.replace(work, seeds=(seed,))
        config = self._config
        (played,) = do_work(
            *(self._env, self._expert, one),
            *(config.randomisation, config.randomise_every, config.state_frame),
        )
        return played

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


def do_work(
    env: HiddenPropertyEnv,
    expert: Expert,
    work: Work,
    randomisation: DomainRandomisation | None = None,
    randomise_every: int = 2,
    state_frame: StateFrame = StateFrame.SCENE,
) -> Played:
    """Play what is asked for, in this process."""
    wanted = not isinstance(work, Play) or work.randomised
    played = []
    for seed in work.seeds:
        applies = wanted and (seed + 1) % randomise_every == 0
        env.randomisation = randomisation if applies else None
        played.append(_play_one(env, expert, work, seed, state_frame))
    return played


def _play_one(
    env: HiddenPropertyEnv, expert: Expert, work: Work, seed: int, state_frame: StateFrame
) -> tuple[Episode, EpisodeOutcome]:
    if isinstance(work, Demonstrate):
        return play_expert(env, expert, seed, state_frame=state_frame)
    if isinstance(work, PlayRandom):
        return play_random(env, seed, state_frame=state_frame)
    expert_takeover_at = None
    if work.expert_takeover_within:
        expert_takeover_at = int(
            np.random.default_rng((seed, 2)).integers(work.expert_takeover_within)
        )
    exploration = None
    if work.exploration_std:
        exploration = Exploration.drawn(work.exploration_std, np.random.default_rng((seed, 3)))
    return play_policy(
        env,
        work.policy,
        seed,
        rng=np.random.default_rng((seed, 1)) if work.stochastic else None,
        expert=expert if work.label_with_expert else None,
        expert_takeover_at=expert_takeover_at,
        exploration=exploration,
        state_frame=state_frame,
    )


def seeds_from(first: int, count: int) -> tuple[int, ...]:
    """`count` consecutive seeds."""
    return tuple(range(first, first + count))
