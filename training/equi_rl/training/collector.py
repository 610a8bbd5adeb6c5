# SPDX-License-Identifier: MIT
"""A second process that plays episodes while the first one learns.

Requests are answered in lock step: the learner asks for a round of episodes with the weights it has
now, continues learning, and fetches the episodes when it needs them. So the result does not depend
on which process is faster, and a run can be repeated from its seed.
"""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.data.episode import Episode
from equi_rl.envs import HiddenPropertyEnv, make_env
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
    """The playing process failed or died; carries what it said."""


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

    policy: ActingPolicy
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


class Collector:
    """Handle of the playing process; use it as a context manager."""

    def __init__(self, config: CollectorConfig) -> None:
        # Spawned, not forked: a forked copy of a process with running threads may hang.
        context = multiprocessing.get_context("spawn")
        self._connection, remote = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(remote, config), name="equi-collector", daemon=True
        )
        self._process.start()
        remote.close()
        self._pending = 0

    def request(self, work: Demonstrate | Play | PlayRandom) -> None:
        """Send a request; `fetch` returns its episodes later, in the order of the requests."""
        self._connection.send(work)
        self._pending += 1

    def fetch(self) -> Played:
        """Episodes of the oldest request; waits for them."""
        if not self._pending:
            raise CollectorError("nothing was requested")
        try:
            answer = self._connection.recv()
        except (EOFError, ConnectionResetError):  # it died before or while it answered
            self._process.join(timeout=5)
            raise CollectorError(
                f"the playing process died (exit code {self._process.exitcode}); "
                "continue the run with --resume"
            ) from None
        self._pending -= 1
        if isinstance(answer, str):
            raise CollectorError(f"the playing process failed:\n{answer}")
        played: Played = answer
        return played

    def play(self, work: Demonstrate | Play | PlayRandom) -> Played:
        """Request and fetch at once."""
        if self._pending:
            raise CollectorError("fetch what was requested before playing something else")
        self.request(work)
        return self.fetch()

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(timeout=2)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(timeout=5)

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def do_work(
    env: HiddenPropertyEnv,
    expert: Expert,
    work: Demonstrate | Play | PlayRandom,
    randomisation: DomainRandomisation | None = None,
    randomise_every: int = 2,
) -> Played:
    """Play what is asked for, in this process."""
    wanted = not isinstance(work, Play) or work.randomised
    played = []
    for seed in work.seeds:
        applies = wanted and (seed + 1) % randomise_every == 0
        env.randomisation = randomisation if applies else None
        played.append(_play_one(env, expert, work, seed))
    return played


def _play_one(
    env: HiddenPropertyEnv, expert: Expert, work: Demonstrate | Play | PlayRandom, seed: int
) -> tuple[Episode, EpisodeOutcome]:
    if isinstance(work, Demonstrate):
        return play_expert(env, expert, seed)
    if isinstance(work, PlayRandom):
        return play_random(env, seed)
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
    )


def seeds_from(first: int, count: int) -> tuple[int, ...]:
    """`count` consecutive seeds."""
    return tuple(range(first, first + count))


def _serve(connection: Connection, config: CollectorConfig) -> None:
    """Body of the playing process: answer requests until the connection closes."""
    # Two processes share the machine: one thread each.
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    torch.set_num_threads(1)
    env: HiddenPropertyEnv | None = None
    try:
        env = make_env(config.task, **dict(config.env_options))
        expert = make_expert(config.task, env.contract, config.expert)
        while True:
            work: Demonstrate | Play | PlayRandom = connection.recv()
            connection.send(
                do_work(env, expert, work, config.randomisation, config.randomise_every)
            )
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        pass  # the learner has gone
    except Exception:  # reported to the learner, which raises it there
        connection.send(traceback.format_exc())
    finally:
        if env is not None:
            env.close()


__all__: Sequence[str] = (
    "Collector",
    "CollectorConfig",
    "CollectorError",
    "Demonstrate",
    "Play",
    "PlayRandom",
    "do_work",
    "seeds_from",
)
