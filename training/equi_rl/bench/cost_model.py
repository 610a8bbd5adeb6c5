# SPDX-License-Identifier: MIT
"""How long runs and sweeps take on a number of cores, from parts that were measured on one.

    run    T(p) = t_start + E_0 / (p r) + U_0 t_u + max(U t_u, (S + E) / (p r) + n t_round)
    sweep  longest runs first onto floor(C / (1 + p)) places of C cores; the fullest place decides

with S environment steps, U updates and n rounds after pretraining, E_0 and U_0 those of it, E steps
of evaluations, r steps/s of one player, t_u seconds of an update, t_round seconds that a round
costs beside playing (weights out, episodes in), p players. Learning overlaps with playing and with
evaluations, so the longer of the two counts. The learner is the bottleneck from
p* = (S + E) / (U r t_u) players on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from equi_rl.training.config import RobotRun


@dataclass(frozen=True)
class Parts:
    """What was measured on one core."""

    update_s: float
    """Seconds of one update of the run's batch, one thread."""
    steps_per_s: float
    """Environment steps per second of one player, policy and rendering included."""
    round_s: float
    """Seconds that a round costs beside playing."""
    start_s: float
    """Seconds until the first player is ready."""


@dataclass(frozen=True)
class Work:
    """What a run does, counted from its settings."""

    pretraining_steps: float
    pretraining_updates: float
    steps: float
    updates: float
    rounds: float
    evaluation_steps: float


STEPS_OF_A_DEMONSTRATION = 15.0
"""Mean over tasks of the expert's successful episodes; a policy that fails plays to the end."""


def work_of(run: RobotRun, steps_per_episode: float = 50.0) -> Work:
    """Counts of a run; `steps_per_episode` of its own episodes, at most those of the time limit."""
    shown = run.demonstrations * STEPS_OF_A_DEMONSTRATION
    random = run.random_episodes * run.contract.max_steps
    before = shown + random
    pre_updates = run.imitation.updates + run.pre_updates_per_step * before
    per_round = run.episodes_per_round * steps_per_episode
    if run.environment_steps:
        steps = max(0.0, run.environment_steps - before)
        rounds = steps / per_round
    else:
        rounds, steps = float(run.rounds), run.rounds * per_round
    updates = rounds * run.updates_per_round or run.updates_per_step * steps
    if run.evaluation_share is not None:
        evaluation = run.evaluation_share * run.environment_steps
    else:
        evaluation = rounds / run.evaluate_every * run.evaluation_episodes * steps_per_episode
    return Work(before, pre_updates, steps, updates, rounds, evaluation)


def run_s(work: Work, parts: Parts, players: int) -> float:
    """Wall time of one run [s]."""
    played_per_s = players * parts.steps_per_s
    before = work.pretraining_steps / played_per_s + work.pretraining_updates * parts.update_s
    learning = work.updates * parts.update_s
    played = work.steps + work.evaluation_steps
    playing = played / played_per_s + work.rounds * parts.round_s
    return parts.start_s + before + max(learning, playing)


def players_at_the_learners_limit(work: Work, parts: Parts) -> float:
    """So many players play as fast as one learner learns; more of them wait."""
    if not work.updates:
        return math.inf
    played = work.steps + work.evaluation_steps
    return played / (work.updates * parts.steps_per_s * parts.update_s)


def sweep_s(works: list[Work], parts: list[Parts], cores: int, players: int = 1) -> float:
    """Wall time of a sweep [s]: longest jobs first, each on 1 + players cores, on any node."""
    slots = max(1, cores // (1 + players))
    busy_until = [0.0] * min(slots, len(works))
    seconds = sorted(
        (run_s(w, p, players) for w, p in zip(works, parts, strict=True)), reverse=True
    )
    for job_s in seconds:
        first = min(range(len(busy_until)), key=busy_until.__getitem__)
        busy_until[first] += job_s
    return max(busy_until)


def best_players(works: list[Work], parts: list[Parts], cores: int) -> int:
    """Players a run with which the sweep ends first."""
    return min(range(1, max(2, cores)), key=lambda p: (sweep_s(works, parts, cores, p), p))
