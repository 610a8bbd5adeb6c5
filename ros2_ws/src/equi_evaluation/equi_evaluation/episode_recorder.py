# SPDX-License-Identifier: MIT
"""Records the running episode: opened and closed with it, fed by its topics.

Between episodes nothing is recorded, and a topic that comes too often is thinned out.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_evaluation.bag.metadata import OfferedQos
from equi_evaluation.bag.writer import BagWriter
from equi_evaluation.message_definitions import definition_of, type_hash_of
from equi_evaluation.recording import RecordingError

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
        self._problem = ""

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
        self._problem = ""
        try:
            self._recorder = BagWriter(folder, self._namespace)
        except OSError as error:
            self._fail(error)
            return
        with self._until_failure() as recorder:
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
            with self._until_failure() as recorder:
                recorder.write(topic, data, now_ns)

    def end(self, metadata: Mapping[str, str]) -> str:
        """Close the recording; nothing happens if none is open.

        Returns:
            Why the episode has no recording, although one was started; empty if it has.
        """
        if self._recorder is not None:
            with self._until_failure() as recorder:
                recorder.add_metadata("episode", dict(metadata))
                recorder.close()
            self._recorder = None
        problem, self._problem = self._problem, ""
        return problem

    @contextmanager
    def _until_failure(self) -> Iterator[BagWriter]:
        """The open bag; one that cannot be written ends the recording, never the episode."""
        recorder = self._recorder
        if recorder is None:
            raise RecordingError("no recording is open; call start first")
        try:
            yield recorder
        except OSError as error:
            recorder.abandon()
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._recorder = None
        self._problem = (
            f"{error.strerror or error}; the unfinished bag was removed: make room, "
            "or record to another disk with --output"
        )


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
