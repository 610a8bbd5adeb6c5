# SPDX-License-Identifier: MIT
"""equi-demos: what is recorded can be read, played again bit for bit, and shown."""

from __future__ import annotations

import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image, ImageSequence

from equi_rl.cli.demos import main
from equi_rl.data.demonstrations import DemoError, DemoSet


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("demos") / "picking.npz"
    assert (
        main(["record", "--task", "block_picking", "--episodes", "2", "--output", str(path)]) == 0
    )
    return path


def test_a_recorded_file_says_everything_about_its_episodes(recorded):
    demos = DemoSet.load(recorded)
    assert demos.contract.task == "block_picking"
    for demo in demos.demos:
        steps = len(demo.executed_action)
        assert demo.depth.shape == (steps + 1, 84, 84)
        assert demo.holding.shape == (steps + 1,)
        assert demo.requested_action.shape == demo.executed_action.shape == (steps, 5)
        assert demo.reward.tolist() == [0.0] * (steps - 1) + [1.0]
        assert (demo.terminated, demo.truncated, demo.success) == (True, False, True)
        observation = demo.observation(steps)
        assert observation.shape == (2, 84, 84)
        assert observation[1].all()  # it ends with the cube in hand


def test_a_frame_costs_far_less_than_its_raw_size(recorded):
    frames = sum(len(demo.depth) for demo in DemoSet.load(recorded).demos)
    assert recorded.stat().st_size < frames * 84 * 84 * 2 / 5


def test_a_recorded_episode_becomes_a_video_and_a_filmstrip(recorded, tmp_path):
    video, strip = tmp_path / "a.gif", tmp_path / "a.png"
    arguments = ["show", "--file", str(recorded), "--video", str(video), "--filmstrip", str(strip)]
    assert main(arguments) == 0
    with Image.open(video) as gif:
        frames = sum(1 for _ in ImageSequence.Iterator(gif))
    assert frames > len(DemoSet.load(recorded).demos[0].executed_action)
    with Image.open(strip) as image:
        assert image.width > 1000
    assert strip.stat().st_size < 300_000


def test_a_video_that_browsers_play_is_written_by_its_ending(recorded, tmp_path):
    video = tmp_path / "a.mp4"
    assert main(["show", "--file", str(recorded), "--video", str(video)]) == 0
    description = next(imageio_ffmpeg.read_frames(str(video)))
    assert description["codec"] == "h264"
    assert description["fps"] == 4.0
    assert main(["show", "--file", str(recorded), "--video", str(tmp_path / "a.avi")]) == 2


def test_a_video_can_be_an_mp4(recorded, tmp_path):
    video = tmp_path / "a.mp4"
    assert main(["show", "--file", str(recorded), "--episode", "1", "--video", str(video)]) == 0
    assert video.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "--file", "nowhere.npz", "--video", "a.gif"], "does not exist"),
        (["show", "--task", "block_picking"], "nothing to write"),
        (["show", "--video", "a.gif"], "either --task"),
        (["record", "--task", "block_picking", "--output", "a.txt"], ".npz"),
    ],
)
def test_a_wrong_command_explains_itself(arguments, said, capsys):
    assert main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_file_of_something_else_is_refused(tmp_path):
    path = tmp_path / "other.npz"
    np.savez(path, stuff=np.zeros(3))
    with pytest.raises(DemoError, match="not a demonstration file"):
        DemoSet.load(path)


def test_an_episode_that_is_not_in_the_file_is_named(recorded, capsys):
    assert main(["show", "--file", str(recorded), "--episode", "9", "--video", "a.gif"]) == 2
    assert "0 .. 1" in capsys.readouterr().err
