# SPDX-License-Identifier: MIT
"""Play a trained CarFlag policy in the gymnasium environment and keep the episodes as a video.

python -m equi_rl.carflag.video --run runs/first --out episode.gif --episodes 3
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import tyro

from equi_rl.carflag.env import CarFlag1DEnv, CarFlag2DEnv
from equi_rl.carflag.policy import GridPolicy
from equi_rl.carflag.render import save_video
from equi_rl.carflag.run import CarFlagRun
from equi_rl.training.run_folder import RunFolder, RunFolderError

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class VideoCommand:
    """Record greedy episodes of a run's last checkpoint.

    Example: python -m equi_rl.carflag.video --run runs/first --out episode.gif
    """

    run: Path
    """Run folder with a checkpoint."""
    out: Path
    """File to write: .mp4 (H.264) or .gif."""
    learner: int = 0
    """Which of the run's seeds plays, counted from 0."""
    episodes: int = 3
    """How many, one after the other."""
    seed: int = 0
    """Seed of the environment."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    command = tyro.cli(
        VideoCommand, prog="equi_rl.carflag.video", description=__doc__, args=arguments
    )
    try:
        frames, successes = render_episodes(
            command.run, command.learner, command.episodes, command.seed
        )
    except RunFolderError as error:
        LOGGER.error("equi_rl.carflag.video: %s", error)
        return 2
    save_video(frames, command.out)
    LOGGER.info("%d of %d episodes at the goal; %s", successes, command.episodes, command.out)
    return 0


@torch.no_grad()
def render_episodes(
    folder: Path, learner: int, episodes: int, seed: int
) -> tuple[list[np.ndarray], int]:
    """Frames (height, width, 3) uint8 of greedy episodes, and how many reached the goal."""
    run_folder = RunFolder(folder)
    run = CarFlagRun.from_json(run_folder.read_config()["config"])
    checkpoint = run_folder.load_checkpoint()
    if checkpoint is None:
        raise RunFolderError(
            f"{folder} has no checkpoint yet; let it train to its first evaluation"
        )
    if not 0 <= learner < len(run.seeds):
        raise RunFolderError(f"learner = {learner}, but the run has {len(run.seeds)} (from 0)")
    policy = GridPolicy(run.world(), equivariant=run.is_equivariant, memory=run.memory())
    parameters = torch.from_numpy(checkpoint[0]["parameters"][learner : learner + 1])
    weights = policy.weights(policy.expand(parameters))
    kind = CarFlag1DEnv if run.domain == "carflag-1d" else CarFlag2DEnv
    env = kind(run.size, run.offset, render_mode="rgb_array")
    random = [np.random.default_rng(seed)]
    frames: list[np.ndarray] = []
    successes = 0
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed if episode == 0 else None)
        state = policy.initial_state(1, 1)
        ended = False
        while not ended:
            frames.append(_frame(env))
            seen = torch.from_numpy(observation)[None, None]
            noise = policy.memory.draw_noise(random, 1)
            logits, _, state = policy.step(weights, seen, state, noise)
            observation, _, terminated, truncated, info = env.step(int(logits.argmax()))
            ended = terminated or truncated
            successes += int(info["success"])
        frames += 4 * [_frame(env)]  # the end stays for a moment
    return frames, successes


def _frame(env: CarFlag1DEnv | CarFlag2DEnv) -> np.ndarray:
    image = env.render()
    if image is None:
        raise RuntimeError("the environment was made without render_mode='rgb_array'")
    return image


if __name__ == "__main__":
    sys.exit(main())
