# SPDX-License-Identifier: MIT
"""Videos are H.264 in yuv420p, the one MP4 that every browser plays."""

from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from equi_core.video import write_mp4


def frames_of(count: int, width: int = 64, height: int = 48) -> list[np.ndarray]:
    """Plain frames whose red channel grows: frame k has red = 40 + 20 k, green = 10, blue = 200."""
    frames = np.empty((count, height, width, 3), np.uint8)
    frames[..., 0] = (40 + 20 * np.arange(count))[:, None, None]
    frames[..., 1], frames[..., 2] = 10, 200
    return list(frames)


def read_back(path: Path) -> tuple[dict, np.ndarray]:
    reader = imageio_ffmpeg.read_frames(str(path))
    header = next(reader)
    width, height = header["size"]
    return header, np.stack([np.frombuffer(f, np.uint8).reshape(height, width, 3) for f in reader])


def test_the_video_is_h264_yuv420p_with_the_given_rate_and_every_frame(tmp_path):
    path = write_mp4(tmp_path / "film.mp4", iter(frames_of(6)), fps=8.0)

    header, decoded = read_back(path)
    assert header["codec"] == "h264"
    assert header["pix_fmt"].startswith("yuv420p")
    assert header["fps"] == 8.0
    assert header["size"] == (64, 48)
    assert decoded.shape == (6, 48, 64, 3)
    # Colours pass through a lossy code: RGB in, RGB out, not BGR.
    np.testing.assert_allclose(decoded[3].mean(axis=(0, 1)), [100, 10, 200], atol=8)


def test_playing_can_begin_before_the_file_is_loaded(tmp_path):
    data = write_mp4(tmp_path / "film.mp4", frames_of(3), fps=4).read_bytes()

    assert 0 < data.index(b"moov") < data.index(b"mdat")


def test_an_odd_size_is_extended_by_one_pixel_instead_of_rescaled(tmp_path):
    header, decoded = read_back(write_mp4(tmp_path / "odd.mp4", frames_of(2, 33, 21), fps=4))

    assert header["size"] == (34, 22)
    assert len(decoded) == 2


def test_a_failing_source_of_frames_leaves_no_file(tmp_path):
    def failing():
        yield frames_of(1)[0]
        raise RuntimeError("camera lost")

    with pytest.raises(RuntimeError, match="camera lost"):
        write_mp4(tmp_path / "film.mp4", failing(), fps=4)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "frames", "fps", "message"),
    [
        ("film.mp4", [], 4, "0 frames"),
        ("film.gif", frames_of(1), 4, "must end in .mp4"),
        ("film.mp4", frames_of(1), 0, "fps = 0 must be positive"),
        ("film.mp4", [frames_of(1)[0].astype(np.float32)], 4, "float32 .* must be uint8 RGB"),
        ("film.mp4", [*frames_of(1), *frames_of(1, width=32)], 4, "32 x 48 px, the first is 64"),
    ],
)
def test_what_cannot_be_encoded_is_refused_with_a_reason(tmp_path, name, frames, fps, message):
    with pytest.raises(ValueError, match=message):
        write_mp4(tmp_path / name, frames, fps)
    assert list(tmp_path.iterdir()) == []
