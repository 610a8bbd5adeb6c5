# SPDX-License-Identifier: MIT
"""Episode recordings as MCAP: the messages' own bytes, readable by Foxglove, rosbag2 and ourselves.

Serialised messages are written as they came, with the text of their definitions as schema; nothing
is converted, so a replay sees what the nodes saw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer
from mcap_ros2.decoder import DecoderFactory

_SEPARATOR = "=" * 80


class RecordingError(ValueError):
    """A recording that cannot be written or read; says why."""


@dataclass(frozen=True)
class RecordedMessage:
    """One message of a recording, decoded."""

    topic: str
    type_name: str
    log_time_ns: int
    message: Any
    """Attributes named as the message's fields."""


class McapRecorder:
    """Writes one recording; a context manager."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("wb")
        self._writer = Writer(self._file, compression=CompressionType.ZSTD)
        self._writer.start(profile="ros2", library="equi_evaluation")
        self._channels: dict[str, int] = {}
        self._counts: dict[str, int] = {}

    def __enter__(self) -> McapRecorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_topic(self, topic: str, type_name: str, definition: str) -> None:
        """Announce a topic; `type_name` like equi_interfaces/msg/Observation."""
        schema = self._writer.register_schema(type_name, "ros2msg", definition.encode())
        self._channels[topic] = self._writer.register_channel(topic, "cdr", schema)
        self._counts[topic] = 0

    def write(self, topic: str, data: bytes, time_ns: int) -> None:
        """Write one serialised message."""
        if topic not in self._channels:
            raise RecordingError(f"topic '{topic}' was not announced by add_topic")
        self._writer.add_message(
            channel_id=self._channels[topic],
            log_time=time_ns,
            publish_time=time_ns,
            sequence=self._counts[topic],
            data=data,
        )
        self._counts[topic] += 1

    def add_metadata(self, name: str, values: dict[str, str]) -> None:
        """Attach metadata, e.g. the seed and how the episode ended."""
        self._writer.add_metadata(name, values)

    def close(self) -> None:
        """Finish the file."""
        if not self._file.closed:
            self._writer.finish()
            self._file.close()


def read_recording(path: Path, topics: Iterable[str] | None = None) -> Iterator[RecordedMessage]:
    """Messages of a recording in the order of their times."""
    if not path.is_file():
        raise RecordingError(f"no recording at {path}")
    wanted = None if topics is None else list(topics)
    with path.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for schema, channel, raw, decoded in reader.iter_decoded_messages(topics=wanted):
            yield RecordedMessage(
                channel.topic, schema.name if schema else "", raw.log_time, decoded
            )


def read_metadata(path: Path) -> dict[str, dict[str, str]]:
    """The metadata attached to a recording, by name."""
    with path.open("rb") as file:
        reader = make_reader(file)
        return {item.name: dict(item.metadata) for item in reader.iter_metadata()}


def full_definition(type_name: str, texts: dict[str, str]) -> str:
    """A message's definition followed by those of all it contains, as `ros2msg` schemas want it.

    Args:
        type_name: package/msg/Name.
        texts: every definition needed, by package/msg/Name.
    """
    order, waiting = [], [type_name]
    while waiting:
        name = waiting.pop(0)
        if name in order:
            continue
        if name not in texts:
            raise RecordingError(f"the definition of {name} is missing")
        order.append(name)
        waiting += referenced_types(texts[name], name.split("/")[0])
    parts = [texts[type_name]]
    for name in order[1:]:
        package, _, short = name.split("/")
        parts.append(f"{_SEPARATOR}\nMSG: {package}/{short}\n{texts[name]}")
    return "\n".join(parts)


def referenced_types(definition: str, package: str) -> list[str]:
    """Message types (package/msg/Name) that a definition uses."""
    found = []
    for line in definition.splitlines():
        words = line.split("#")[0].split()
        if len(words) < 2:
            continue
        kind = words[0].split("[")[0].split("<")[0]
        if "/" in kind:
            first, *_, last = kind.split("/")
            found.append(f"{first}/msg/{last}")
        elif kind[:1].isupper():
            found.append(f"{package}/msg/{kind}")
    return found
