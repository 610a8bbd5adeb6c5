# SPDX-License-Identifier: MIT
"""Reads records of episodes: rosbag2 bags with an MCAP file, or such a file alone.

Topics come without the namespace in which they were recorded, so that one reader does for every
cell. Older records are single files whose topics have no leading slash.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcap.reader import McapReader, make_reader
from mcap_ros2.decoder import DecoderFactory

ORIGIN = "equi_origin"
"""Name of the metadata that says in which namespace a record was made."""
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


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Turn whatever the decoders say to damaged bytes into one error that names the file."""
    try:
        yield
    except (RecordingError, KeyboardInterrupt, GeneratorExit):
        raise
    except Exception as error:  # mcap, zstd and struct each have errors of their own
        raise RecordingError(
            f"{path} is damaged or not a record: {type(error).__name__}: {error}"
        ) from error


def mcap_file(path: Path) -> Path:
    """The MCAP file of a record: the path itself, or the only one in a bag's folder."""
    if path.is_dir():
        files = sorted(path.glob("*.mcap"))
        if len(files) == 1:
            return files[0]
        raise RecordingError(f"{path} holds {len(files)} MCAP files; a record has exactly one")
    if not path.is_file():
        raise RecordingError(f"no recording at {path}")
    return path


def read_recording(path: Path, topics: Iterable[str] | None = None) -> Iterator[RecordedMessage]:
    """Messages of a recording in the order of their times.

    Args:
        path: the bag's folder or an MCAP file.
        topics: only these, named relative to the recorded namespace, such as observation.
    """
    wanted = None if topics is None else set(topics)
    file_path = mcap_file(path)
    with file_path.open("rb") as file, damage_named(file_path):
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        names = _relative_names(reader)
        recorded = None
        if wanted is not None:
            recorded = [topic for topic, name in names.items() if name in wanted]
            if not recorded:
                return
        for schema, channel, raw, decoded in reader.iter_decoded_messages(topics=recorded):
            name = names.get(channel.topic, channel.topic)
            yield RecordedMessage(name, schema.name if schema else "", raw.log_time, decoded)


def read_metadata(path: Path) -> dict[str, dict[str, str]]:
    """The metadata attached to a recording, by name."""
    file_path = mcap_file(path)
    with file_path.open("rb") as file, damage_named(file_path):
        return {
            item.name: dict(item.metadata)
            for item in make_reader(file).iter_metadata()
            if item.name not in (ORIGIN, "rosbag2")
        }


def _relative_names(reader: McapReader) -> dict[str, str]:
    """Recorded topic -> its name relative to the namespace of the recorder."""
    summary = reader.get_summary()
    channels = [] if summary is None else list(summary.channels.values())
    origin = [dict(item.metadata) for item in reader.iter_metadata() if item.name == ORIGIN]
    namespace = origin[0].get("namespace", "/") if origin else "/"
    prefix = namespace.rstrip("/") + "/"
    return {channel.topic: channel.topic.removeprefix(prefix).lstrip("/") for channel in channels}


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
