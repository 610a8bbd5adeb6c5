# SPDX-License-Identifier: MIT
"""Writes a rosbag2 bag: a folder with one MCAP file and metadata.yaml.

Serialised messages are written as they came, with the text of their definitions as schema; nothing
is converted, so whoever plays the bag sends what the nodes saw. rosbag2 itself is not needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from mcap.writer import CompressionType, Writer

from equi_evaluation.bag.metadata import (
    METADATA_FILE,
    ROS_DISTRO,
    BagTopic,
    OfferedQos,
    bag_information,
    information_text,
    metadata_text,
    qos_text,
)
from equi_evaluation.recording import ORIGIN, RecordingError


class BagWriter:
    """One bag while it is written; a context manager."""

    def __init__(self, folder: Path, namespace: str = "/") -> None:
        """Make the folder, which must not exist, and open its file.

        Args:
            folder: where; rosbag2 names a bag by its folder.
            namespace: in which the topics were recorded; readers leave it out of their names.
        """
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise RecordingError(
                f"{folder} exists already and is kept; choose another name for the record"
            ) from None
        self.folder = folder
        self._namespace = namespace
        self._name = f"{folder.name}_0.mcap"
        self._file = (folder / self._name).open("wb")
        self._writer = Writer(self._file, compression=CompressionType.ZSTD)
        self._writer.start(profile="ros2", library="equi_evaluation")
        self._topics: dict[str, BagTopic] = {}
        self._channels: dict[str, int] = {}
        self._schemas: dict[str, int] = {}
        self._first_ns: int | None = None
        self._last_ns = 0

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_topic(
        self,
        topic: str,
        type_name: str,
        definition: str,
        *,
        type_hash: str = "",
        qos: Sequence[OfferedQos] = (),
    ) -> None:
        """Announce a topic.

        Args:
            topic: full name; a leading slash is added where it lacks.
            type_name: like equi_interfaces/msg/Observation.
            definition: text of the definition with all that it contains.
            type_hash: RIHS01_..., by which ROS tells versions of a type apart.
            qos: what its publishers offer.
        """
        name = "/" + topic.lstrip("/")
        if type_name not in self._schemas:
            self._schemas[type_name] = self._writer.register_schema(
                type_name, "ros2msg", definition.encode()
            )
        # rosbag2's own keys: the player reads QoS and hash from here.
        details = {"offered_qos_profiles": qos_text(qos), "topic_type_hash": type_hash}
        self._channels[name] = self._writer.register_channel(
            name, "cdr", self._schemas[type_name], details
        )
        self._topics[name] = BagTopic(name, type_name, type_hash, tuple(qos))

    def write(self, topic: str, data: bytes, time_ns: int) -> None:
        """Write one serialised message."""
        name = "/" + topic.lstrip("/")
        if name not in self._topics:
            raise RecordingError(f"topic '{topic}' was not announced by add_topic")
        entry = self._topics[name]
        self._writer.add_message(
            channel_id=self._channels[name],
            log_time=time_ns,
            publish_time=time_ns,
            sequence=entry.message_count,
            data=data,
        )
        self._topics[name] = dataclasses.replace(entry, message_count=entry.message_count + 1)
        self._first_ns = time_ns if self._first_ns is None else min(self._first_ns, time_ns)
        self._last_ns = max(self._last_ns, time_ns)

    def add_metadata(self, name: str, values: dict[str, str]) -> None:
        """Attach metadata, e.g. the seed and how the episode ended."""
        self._writer.add_metadata(name, values)

    def abandon(self) -> None:
        """Give up, as on a full disk: half a bag would look like a whole one, so it is removed."""
        with contextlib.suppress(OSError, ValueError):  # its buffer cannot be written either
            self._file.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """Finish the file, then write metadata.yaml."""
        if self._file.closed:
            return
        start_ns = self._first_ns or 0
        information = bag_information(
            self._name,
            list(self._topics.values()),
            start_ns,
            max(self._last_ns, start_ns),
            {ORIGIN: self._namespace},
        )
        self._writer.add_metadata(ORIGIN, {"namespace": self._namespace})
        self._writer.add_metadata(
            "rosbag2",
            {"ROS_DISTRO": ROS_DISTRO, "serialized_metadata": information_text(information)},
        )
        self._writer.finish()
        self._file.close()
        # In one move: a folder with a half-written metadata.yaml would be a broken bag.
        temporary = self.folder / f".{METADATA_FILE}"
        temporary.write_text(metadata_text(information), encoding="utf-8")
        os.replace(temporary, self.folder / METADATA_FILE)
