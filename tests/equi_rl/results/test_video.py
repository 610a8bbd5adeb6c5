# SPDX-License-Identifier: MIT
"""Videos of episodes: every line of text is inside the picture."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from equi_core.contract import PolicyContract
from equi_rl.envs import make_env
from equi_rl.results.video import Frame, write_filmstrip, write_video


@pytest.fixture(scope="module")
def contract() -> PolicyContract:
    env = make_env("block_picking")
    try:
        return env.contract
    finally:
        env.close()


def frame() -> Frame:
    """A moment whose pictures are of one colour, so that all ink is text."""
    plain = np.full((270, 360, 3), 200, dtype=np.uint8)
    observation = np.ones((2, 84, 84), dtype=np.float32)
    action = np.array([1.0, -1.0, 1.0, -1.0, 1.0], dtype=np.float32)
    return Frame(8, plain, observation, action, True)


def test_no_line_of_text_is_cut_at_the_edge_of_a_video(tmp_path, contract):
    write_video([frame()], contract, tmp_path / "a.gif")
    image = np.asarray(Image.open(tmp_path / "a.gif").convert("L"))
    dark_rows = np.flatnonzero((image[:, 372:] < 150).any(axis=1))
    lines = np.flatnonzero(np.diff(dark_rows) > 3)
    assert len(lines) + 1 == 5  # step, holding, and three lines of the action
    assert dark_rows.max() <= image.shape[0] - 4


def test_no_line_of_text_is_cut_at_the_edge_of_a_filmstrip(tmp_path, contract):
    write_filmstrip([frame()] * 2, contract, tmp_path / "a.png", count=2, columns=2)
    image = np.asarray(Image.open(tmp_path / "a.png").convert("L"))
    dark_rows = np.flatnonzero((image[233:, 135:300] < 100).any(axis=1))
    assert dark_rows.max() <= image.shape[0] - 233 - 4
