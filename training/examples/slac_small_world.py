# SPDX-License-Identifier: MIT
"""SLAC on a world so small that it must succeed: bring the gripper above the one block.

    python training/examples/slac_small_world.py --seeds 2 --out runs/slac_small_world

An image of 16 x 16 pixels is centred on the gripper and shows the block, so nothing is hidden. A
step moves the gripper by up to two pixels along x and y; three of the five action components do
nothing. Reward is 1 at the end, as on the robot tasks. Learner, policy, replay buffer and batches
are those of `equi-train slac`.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from equi_core.statistics import SuccessRate
from equi_rl.agents.acting_policy import Policy
from equi_rl.data.collate import Augmentation, collate
from equi_rl.data.episode import Episode, EpisodeRecorder
from equi_rl.data.replay_buffer import EpisodeReplayBuffer
from equi_rl.slac.config import LatentModelConfig, SlacRun
from equi_rl.slac.learner import SlacLearner

SIZE_PX = 16
STEP_PX = 2.0
REACH_PX = 1.0
"""The gripper is above the block when no axis is farther off."""
FARTHEST_PX = 6.0
TIME_LIMIT = 20
TABLE_M, BLOCK_M = 0.2, 0.1
EVALUATION_SEED = 1_000_000
ROUNDS, EPISODES_PER_ROUND, UPDATES_PER_ROUND = 20, 4, 40
EVALUATE_EVERY = 10


class SmallWorld:
    """One block; `reset` and `step` as gymnasium has them."""

    def reset(self, seed: int) -> NDArray[np.float32]:
        """Put the block somewhere."""
        rng = np.random.default_rng(seed)
        self.block_px = rng.uniform(-FARTHEST_PX, FARTHEST_PX, 2)
        self.steps = 0
        return self.observation()

    def step(self, action: NDArray[np.floating]) -> tuple[NDArray[np.float32], float, bool, bool]:
        """Observation, reward, terminated, truncated."""
        moved = self.block_px - STEP_PX * np.clip(action[1:3], -1.0, 1.0)
        self.block_px = np.clip(moved, -FARTHEST_PX, FARTHEST_PX)
        self.steps += 1
        success = bool(np.abs(self.block_px).max() <= REACH_PX)
        return self.observation(), float(success), success, self.steps >= TIME_LIMIT

    def observation(self) -> NDArray[np.float32]:
        """(2, S, S): depth, and an empty gripper. x is to the right, y is up."""
        depth = np.full((SIZE_PX, SIZE_PX), TABLE_M, dtype=np.float32)
        row = round(SIZE_PX / 2 - self.block_px[1])
        column = round(SIZE_PX / 2 + self.block_px[0])
        depth[max(0, row - 2) : row + 2, max(0, column - 2) : column + 2] = BLOCK_M
        return np.stack([depth, np.zeros_like(depth)])


def play(policy: Policy | None, seed: int, rng: np.random.Generator | None) -> Episode:
    """One episode; without a policy, of random actions."""
    world = SmallWorld()
    observation = world.reset(seed)
    recorder = EpisodeRecorder(observation)
    state = policy.start(seed) if policy else None
    action = np.zeros(5, dtype=np.float32)
    while True:
        if policy is None:
            action = np.random.default_rng((seed, recorder.n_steps)).uniform(-1.0, 1.0, 5)
        else:
            action, state = policy.act(observation, action, state, rng)
        observation, reward, terminated, truncated = world.step(action)
        recorder.add(action, action, reward, observation)
        if terminated or truncated:
            return recorder.finish(terminated)


def success(policy: Policy | None, episodes: int) -> SuccessRate:
    """Of the policy's mean on worlds that nobody trains on."""
    played = [play(policy, EVALUATION_SEED + number, None) for number in range(episodes)]
    return SuccessRate(sum(episode.succeeded for episode in played), episodes)


def settings(seed: int) -> SlacRun:
    """Small networks, and the same algorithm."""
    return SlacRun(
        "block_picking",  # not played
        seed=seed,
        latent_updates=400,
        actor_critic_updates=4,
        batch_episodes=16,
        history_steps=2,
        actor_hidden_size=128,
        latent_learning_rate=1e-3,
        learning_rate=1e-3,
        initial_temperature=0.01,
        tau=0.02,
        model=LatentModelConfig(
            image_size=SIZE_PX,
            channels=(16, 32),
            feature_size=64,
            z1_size=8,
            z2_size=32,
            hidden_size=64,
        ),
    )


def train(seed: int, episodes: int) -> list[tuple[int, int, float, SuccessRate]]:
    """(environment steps, updates, seconds, success) of every evaluation."""
    run, rng = settings(seed), np.random.default_rng(seed)
    torch.manual_seed(seed)
    learner, buffer = SlacLearner(run), EpisodeReplayBuffer()
    started_s, found = time.monotonic(), []

    def update(count: int) -> None:
        for _ in range(count):
            drawn = buffer.sample(run.batch_episodes, rng)
            learner.update(collate(drawn, SIZE_PX, rng, Augmentation(rotate=True)))

    def evaluate() -> None:
        seconds, rate = time.monotonic() - started_s, success(learner.policy(), episodes)
        found.append((buffer.n_transitions, learner.updates, seconds, rate))
        print(f"seed {seed}: {found[-1][0]} steps, {learner.updates} updates: {rate}", flush=True)  # noqa: T201

    for number in range(50):
        buffer.add(play(None, 10_000 * seed + number, None))
    update(run.latent_updates)
    evaluate()
    for number in range(1, ROUNDS + 1):
        policy, first = learner.policy(), 10_000 * seed + 100 * number
        for episode in range(EPISODES_PER_ROUND):
            buffer.add(play(policy, first + episode, rng))
        update(UPDATES_PER_ROUND)
        if number % EVALUATE_EVERY == 0:
            evaluate()
    return found


def main() -> None:
    """Train some seeds, and write every evaluation to a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="runs, numbered from 0")
    parser.add_argument("--episodes", type=int, default=100, help="of an evaluation")
    parser.add_argument("--out", type=Path, required=True, help="folder for small_world.csv")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    print(f"random actions: {success(None, arguments.episodes)}", flush=True)  # noqa: T201
    with (arguments.out / "small_world.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ("seed", "environment_steps", "updates", "seconds", "successes", "episodes")
        )
        for seed in range(arguments.seeds):
            for steps, updates, seconds, rate in train(seed, arguments.episodes):
                writer.writerow(
                    (seed, steps, updates, round(seconds, 1), rate.successes, rate.episodes)
                )
                file.flush()


if __name__ == "__main__":
    main()
