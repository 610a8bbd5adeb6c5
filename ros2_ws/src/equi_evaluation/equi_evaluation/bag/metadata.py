# SPDX-License-Identifier: MIT
"""metadata.yaml of a rosbag2 bag (version 9, that of ROS 2 Jazzy), and the QoS of its topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

METADATA_FILE = "metadata.yaml"
VERSION = 9
ROS_DISTRO = "jazzy"
UNLIMITED_NS = 2**63 - 1
"""A duration that never ends, as rmw writes it [ns]."""
_PER_SECOND = 1_000_000_000


@dataclass(frozen=True)
class OfferedQos:
    """Quality of service that a publisher offers; the words are those of rmw."""

    history: str = "keep_last"
    depth: int = 10
    reliability: str = "reliable"
    durability: str = "volatile"
    liveliness: str = "automatic"
    deadline_ns: int = UNLIMITED_NS
    lifespan_ns: int = UNLIMITED_NS
    liveliness_lease_ns: int = UNLIMITED_NS

    def document(self) -> dict[str, Any]:
        """The profile as rosbag2 writes it."""
        return {
            "history": self.history,
            "depth": self.depth,
            "reliability": self.reliability,
            "durability": self.durability,
            "deadline": _duration(self.deadline_ns),
            "lifespan": _duration(self.lifespan_ns),
            "liveliness": self.liveliness,
            "liveliness_lease_duration": _duration(self.liveliness_lease_ns),
            "avoid_ros_namespace_conventions": False,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> OfferedQos:
        """Read one profile of a bag; what it does not say is as above."""
        default = cls()
        return cls(
            history=str(document.get("history", default.history)),
            depth=int(document.get("depth", default.depth)),
            reliability=str(document.get("reliability", default.reliability)),
            durability=str(document.get("durability", default.durability)),
            liveliness=str(document.get("liveliness", default.liveliness)),
        )


@dataclass(frozen=True)
class BagTopic:
    """One topic of a bag."""

    name: str
    """With its leading slash."""
    type_name: str
    """package/msg/Name."""
    type_hash: str
    """RIHS01_...; empty if unknown."""
    qos: tuple[OfferedQos, ...]
    message_count: int = 0


def qos_text(profiles: Sequence[OfferedQos]) -> str:
    """The YAML text of offered profiles, as the MCAP channel holds it."""
    return _yaml([profile.document() for profile in profiles])


def read_qos(text: str) -> tuple[OfferedQos, ...]:
    """The offered profiles of an MCAP channel; none if the text holds none."""
    try:
        documents = yaml.safe_load(text) if text else []
    except yaml.YAMLError:
        return ()
    if not isinstance(documents, list):
        return ()
    return tuple(OfferedQos.from_document(item) for item in documents if isinstance(item, dict))


def bag_information(
    file_name: str, topics: Sequence[BagTopic], start_ns: int, end_ns: int, custom: dict[str, str]
) -> dict[str, Any]:
    """What rosbag2 calls the bag file information: one MCAP file and its topics.

    Args:
        file_name: the MCAP file in the bag's folder.
        topics: with their counts.
        start_ns: time of the first message [ns].
        end_ns: time of the last message [ns].
        custom: free data.
    """
    count = sum(topic.message_count for topic in topics)
    span = {
        "starting_time": {"nanoseconds_since_epoch": start_ns},
        "duration": {"nanoseconds": end_ns - start_ns},
        "message_count": count,
    }
    return {
        "version": VERSION,
        "storage_identifier": "mcap",
        **span,
        "topics_with_message_count": [
            {
                "topic_metadata": {
                    "name": topic.name,
                    "type": topic.type_name,
                    "serialization_format": "cdr",
                    "offered_qos_profiles": [profile.document() for profile in topic.qos],
                    "type_description_hash": topic.type_hash,
                },
                "message_count": topic.message_count,
            }
            for topic in topics
        ],
        "compression_format": "",
        "compression_mode": "",
        "relative_file_paths": [file_name],
        "files": [{"path": file_name, **span}],
        "custom_data": custom,
        "ros_distro": ROS_DISTRO,
    }


def metadata_text(information: Mapping[str, Any]) -> str:
    """The text of metadata.yaml."""
    return _yaml({"rosbag2_bagfile_information": dict(information)})


def information_text(information: Mapping[str, Any]) -> str:
    """The same as the MCAP file itself holds it."""
    return _yaml(dict(information))


def _duration(nanoseconds: int) -> dict[str, int]:
    return {"sec": nanoseconds // _PER_SECOND, "nsec": nanoseconds % _PER_SECOND}


class _NoAliases(yaml.SafeDumper):
    """Writes equal values out: rosbag2's reader knows no references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(document: Any) -> str:
    return yaml.dump(document, Dumper=_NoAliases, sort_keys=False, default_flow_style=False)
