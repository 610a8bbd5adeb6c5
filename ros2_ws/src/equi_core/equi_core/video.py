# SPDX-License-Identifier: MIT
"""Write MP4 videos that every browser plays: H.264, yuv420p, index at the front.

write_mp4(Path("episode.mp4"), frames, fps=8.0)
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from numpy.typing import NDArray

Frame = NDArray[np.uint8]
"""One RGB image (height, width, 3)."""


def write_mp4(path: Path, frames: Iterable[Frame], fps: float) -> Path:
    """Encode RGB frames (height, width, 3), all of one size, as H.264.

    The file appears under its name only when it is complete. An odd width or height is extended by
    one column or row, because yuv420p stores colour for blocks of 2 x 2 pixels.

    Raises:
        ValueError: no frames, a frame that is not uint8 RGB or not of the first frame's size, an
            fps that is not positive, or a name that does not end in .mp4.
    """
    if path.suffix.lower() != ".mp4":
        raise ValueError(f"video file {path} ends in '{path.suffix}'; the name must end in .mp4")
    if not fps > 0:
        raise ValueError(f"video {path}: fps = {fps} must be positive")
    remaining = iter(frames)
    first = next(remaining, None)
    if first is None:
        raise ValueError(f"video {path}: got 0 frames; at least one is needed")
    _check_frame(path, first, first)
    partial = path.with_name(f".{path.stem}.partial.mp4")
    height, width = first.shape[:2]
    encoder = imageio_ffmpeg.write_frames(
        str(partial),
        (width + width % 2, height + height % 2),
        fps=fps,
        codec="libx264",
        pix_fmt_in="rgb24",
        pix_fmt_out="yuv420p",
        macro_block_size=2,
        output_params=["-movflags", "+faststart"],
    )
    try:
        encoder.send(None)
        encoder.send(_even(first))
        for frame in remaining:
            _check_frame(path, frame, first)
            encoder.send(_even(frame))
        encoder.close()
        partial.replace(path)
    finally:
        encoder.close()
        partial.unlink(missing_ok=True)
    return path


def _check_frame(path: Path, frame: Frame, first: Frame) -> None:
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
        raise ValueError(
            f"video {path}: a frame is {frame.dtype} {frame.shape}; "
            "frames must be uint8 RGB (height, width, 3)"
        )
    if frame.shape != first.shape:
        raise ValueError(
            f"video {path}: a frame is {frame.shape[1]} x {frame.shape[0]} px, "
            f"the first is {first.shape[1]} x {first.shape[0]} px; all frames must have one size"
        )


def _even(frame: Frame) -> Frame:
    height, width = frame.shape[:2]
    padding = ((0, height % 2), (0, width % 2), (0, 0))
    return np.ascontiguousarray(np.pad(frame, padding, mode="edge"))
