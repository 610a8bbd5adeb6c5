# SPDX-License-Identifier: MIT
"""Draws images/slac_reconstructions.png: what SLAC's latent model sees, keeps and expects.

    python training/docs/draw_slac.py runs/slac/block_pulling [image to write]

Two demonstrations that the run has not learnt from, some steps each: the depth image, its
reconstruction from the posterior, and what the prior alone predicts from the first frames on, given
the actions. All three in the same colours.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from equi_core.scene_seeds import TEST_SEED
from equi_rl.data.collate import Augmentation, collate
from equi_rl.data.episode import Episode
from equi_rl.envs import make_env
from equi_rl.experts import ExpertConfig, make_expert
from equi_rl.slac.images import depth_of
from equi_rl.slac.latent_model import LatentModel
from equi_rl.slac.stored_run import load_learner
from equi_rl.training.rollout import play_expert

IMAGE = Path(__file__).parent / "images" / "slac_reconstructions.png"
SEEN_FRAMES = 3
"""After so many frames the prior is on its own."""
COLUMNS = 8
PLAYED = 10
"""Episodes of the expert from which the longest are shown."""
ROWS = ("observation", "posterior", "prior")


def demonstrations(task: str, count: int) -> list[Episode]:
    """The longest of some episodes of the expert, on scenes that no run trains on."""
    env, expert = make_env(task), make_expert(task, config=ExpertConfig())
    try:
        played = [play_expert(env, expert, TEST_SEED + number) for number in range(PLAYED)]
        return sorted((episode for episode, _ in played), key=len, reverse=True)[:count]
    finally:
        env.close()


def images_of(model: LatentModel, episode: Episode) -> list[Tensor]:
    """Depth images (T + 1, S, S) [m]: observed, reconstructed, predicted by the prior."""
    size_px = episode.depth.shape[-1]
    batch = collate([episode], size_px, np.random.default_rng(0), Augmentation(rotate=False))
    layout, frames = batch.episodes.layout, model.frames(batch.episodes)
    with torch.no_grad():
        previous = layout.previous_actions(batch.episodes.executed_actions)
        noise = torch.zeros(layout.n_frames, model.config.latent_size)
        latents = model.infer(model.encoder(frames), previous, layout, noise)
        states = list(latents.states[:SEEN_FRAMES])
        z2 = latents.z2[SEEN_FRAMES - 1 : SEEN_FRAMES]
        for frame in range(SEEN_FRAMES, layout.n_frames):
            z1, z2 = model.imagine(z2, previous[frame : frame + 1], noise[:1])
            states.append(torch.cat([z1, z2], dim=1)[0])
        shown = (
            frames.pixels,
            model.decoder(latents.states)[0],
            model.decoder(torch.stack(states))[0],
        )
    return [depth_of(pixels)[:, 0] for pixels in shown]


def draw(model: LatentModel, episodes: list[Episode]) -> Figure:
    """Three rows for each episode."""
    figure, axes = plt.subplots(
        len(ROWS) * len(episodes), COLUMNS, figsize=(1.15 * COLUMNS + 0.9, 1.3 * 3 * len(episodes))
    )
    for number, episode in enumerate(episodes):
        rows = images_of(model, episode)
        low, high = float(rows[0].min()), float(rows[0].max())
        steps = np.linspace(0, len(episode), COLUMNS).astype(int)
        for row, (name, images) in enumerate(zip(ROWS, rows, strict=True)):
            for column, step in enumerate(steps):
                axis = axes[len(ROWS) * number + row, column]
                axis.imshow(images[step], cmap="viridis", vmin=low, vmax=high)
                axis.set_xticks([])
                axis.set_yticks([])
                if row == 0:
                    axis.set_title(f"step {step}", fontsize=8)
                if column == 0:
                    axis.set_ylabel(name, fontsize=8)
    figure.tight_layout(pad=0.4)
    return figure


def main() -> None:
    """Draw the figure of the run whose folder is named."""
    folder, *out = (Path(argument) for argument in sys.argv[1:])
    learner = load_learner(folder)
    figure = draw(learner.model, demonstrations(learner.run.task, 2))
    figure.savefig(out[0] if out else IMAGE, dpi=110)


if __name__ == "__main__":
    main()
