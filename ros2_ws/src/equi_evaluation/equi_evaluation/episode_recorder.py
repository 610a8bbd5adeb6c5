# SPDX-License-Identifier: MIT
"""Records the running episode: opened and closed with it, fed by its topics.

Between episodes nothing is recorded, and a topic that comes too often is thinned out.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_evaluation.bag.metadata import OfferedQos
from equi_evaluation.bag.writer import BagWriter
from equi_evaluation.message_definitions import definition_of, type_hash_of

_JPEG_QUALITY = 85


class ImageFormatError(ValueError):
    """An image that cannot be recorded; says what it is and what is needed."""


class EpisodeRecorder:
    """A bag while an episode runs, nothing in between."""

    def __init__(
        self,
        types: Mapping[str, str],
        periods_ns: Mapping[str, int],
        *,
        latched: Mapping[str, int] | None = None,
        namespace: str = "/",
    ) -> None:
        """Nothing is opened yet.

        Args:
            types: full topic name -> package/msg/Name of everything that may be written.
            periods_ns: topic -> shortest time between two of its messages [ns].
            latched: topic -> how many of its messages from before an episode belong to it too.
            namespace: in which the topics are.
        """
        self._types = dict(types)
        self._periods_ns = dict(periods_ns)
        self._namespace = namespace
        self._kept: dict[str, deque[bytes]] = {
            topic: deque(maxlen=count) for topic, count in (latched or {}).items() if count
        }
        self._last_ns: dict[str, int] = {}
        self._recorder: BagWriter | None = None

    @property
    def is_open(self) -> bool:
        """Whether an episode is being recorded."""
        return self._recorder is not None

    @property
    def topics(self) -> tuple[str, ...]:
        """Everything that may be written."""
        return tuple(self._types)

    def start(
        self,
        folder: Path,
        qos: Mapping[str, Sequence[OfferedQos]] | None = None,
        now_ns: int = 0,
    ) -> None:
        """Open the bag of an episode.

        Args:
            folder: must not exist yet.
            qos: topic -> what its publishers offer now.
            now_ns: time of the messages that were latched before [ns].
        """
        recorder = BagWriter(folder, self._namespace)
        for topic, type_name in self._types.items():
            recorder.add_topic(
                topic,
                type_name,
                definition_of(type_name),
                type_hash=type_hash_of(type_name),
                qos=(qos or {}).get(topic, ()),
            )
        for topic, messages in self._kept.items():
            for data in messages:
                recorder.write(topic, data, now_ns)
        self._recorder = recorder

    def write(self, topic: str, data: bytes, now_ns: int) -> None:
        """Keep a serialised message, if an episode runs and the topic's period has passed."""
        kept = self._kept.get(topic)
        if kept is not None and data not in kept:
            kept.append(data)
        period_ns = self._periods_ns.get(topic)
        if period_ns is not None:
            if now_ns - self._last_ns.get(topic, 0) < period_ns:
                return
            self._last_ns[topic] = now_ns
        if self._recorder is not None:
            self._recorder.write(topic, data, now_ns)

    def end(self, metadata: Mapping[str, str]) -> None:
        """Close the recording; nothing happens if none is open."""
        if self._recorder is not None:
            recorder, self._recorder = self._recorder, None
            recorder.add_metadata("episode", dict(metadata))
            recorder.close()


def rgb_image(
    encoding: str, shape: tuple[int, int], step: int, data: bytes | array[int]
) -> NDArray[np.uint8]:
    """The pixels (height, width, 3) of a ROS image.

    Args:
        encoding: as in sensor_msgs/Image; only rgb8 is understood.
        shape: height and width.
        step: bytes of a row, padding included.
        data: the bytes.

    Raises:
        ImageFormatError: it is something else.
    """
    height, width = shape
    if encoding != "rgb8":
        raise ImageFormatError(
            f"is '{encoding}', only rgb8 is recorded; choose another --side-view"
        )
    values = np.frombuffer(data, np.uint8)
    if step < 3 * width or values.size != height * step:
        raise ImageFormatError(
            f"has {values.size} bytes for {height} rows of {width} pixels with {step} bytes each"
        )
    return values.reshape(height, step)[:, : 3 * width].reshape(height, width, 3)


def encode_jpeg(rgb: NDArray[np.uint8]) -> bytes | None:
    """An image as JPEG; None if it cannot be encoded."""
    coded, data = cv2.imencode(".jpg", rgb[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
    return data.tobytes() if coded else None
