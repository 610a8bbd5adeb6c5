# SPDX-License-Identifier: MIT
"""Reads a bag's messages as their bytes, with what is needed to publish them again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from mcap.reader import make_reader

from equi_evaluation.bag.metadata import BagTopic, read_qos
from equi_evaluation.recording import RecordingError, damage_named, mcap_file


@dataclass(frozen=True)
class RawMessage:
    """One serialised message."""

    topic: str
    """With its leading slash."""
    time_ns: int
    """When it was recorded."""
    data: bytes


def bag_topics(path: Path) -> list[BagTopic]:
    """The topics of a bag or MCAP file that hold messages, by name."""
    file_path = mcap_file(path)
    with file_path.open("rb") as file, damage_named(file_path):
        summary = make_reader(file).get_summary()
        if summary is None or summary.statistics is None:
            raise RecordingError(f"{file_path} was not finished; it cannot be played")
        counts = summary.statistics.channel_message_counts
        topics = [
            BagTopic(
                "/" + channel.topic.lstrip("/"),
                summary.schemas[channel.schema_id].name,
                channel.metadata.get("topic_type_hash", ""),
                read_qos(channel.metadata.get("offered_qos_profiles", "")),
                counts.get(channel.id, 0),
            )
            for channel in summary.channels.values()
        ]
    return sorted((topic for topic in topics if topic.message_count), key=lambda item: item.name)


def raw_messages(path: Path, topics: Collection[str]) -> Iterator[RawMessage]:
    """Messages of these topics (with leading slash) in the order of their times."""
    file_path = mcap_file(path)
    with file_path.open("rb") as file, damage_named(file_path):
        for _, channel, message in make_reader(file).iter_messages():
            topic = "/" + channel.topic.lstrip("/")
            if topic in topics:
                yield RawMessage(topic, message.log_time, message.data)
