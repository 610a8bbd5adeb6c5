# SPDX-License-Identifier: MIT
"""Records are rosbag2 bags: read back by a library that is not ours, with types, hashes and QoS."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from equi_interfaces.msg import Observation
from geometry_msgs.msg import TransformStamped
from mcap.writer import Writer
from rclpy.serialization import serialize_message
from rosbags.highlevel import AnyReader
from rosbags.interfaces import QosDurability, QosReliability
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from equi_evaluation.bag.metadata import OfferedQos, read_qos
from equi_evaluation.bag.play_bag_node import chosen_topics
from equi_evaluation.bag.reader import bag_topics, raw_messages
from equi_evaluation.bag.writer import BagWriter
from equi_evaluation.message_definitions import definition_of, type_hash_of
from equi_evaluation.recording import RecordingError, read_metadata, read_recording

OBSERVATION = "equi_interfaces/msg/Observation"
TRANSFORMS = "tf2_msgs/msg/TFMessage"
LATCHED = OfferedQos(depth=1, durability="transient_local")
WEAK = OfferedQos(depth=5, reliability="best_effort")
FIRST_NS = 1_700_000_000_000_000_000


def observation(step: int) -> Observation:
    message = Observation(episode_id="e", step_index=step, channels=2, height=3, width=3)
    message.image.frombytes(np.full(18, step, dtype=np.float32).tobytes())
    return message


def transforms() -> TFMessage:
    item = TransformStamped()
    item.header.frame_id, item.child_frame_id = "base_link", "cam_left_link"
    item.transform.translation.x = 0.25
    return TFMessage(transforms=[item])


@pytest.fixture
def bag(tmp_path):
    """Two observations and a latched transform, recorded in the namespace /cell_a."""
    with BagWriter(tmp_path / "episode-7", "/cell_a") as writer:
        for topic, name, qos in (
            ("/cell_a/observation", OBSERVATION, WEAK),
            ("/cell_a/tf_static", TRANSFORMS, LATCHED),
        ):
            writer.add_topic(
                topic, name, definition_of(name), type_hash=type_hash_of(name), qos=[qos]
            )
        writer.write("/cell_a/tf_static", serialize_message(transforms()), FIRST_NS)
        for step in range(2):
            data = serialize_message(observation(step))
            writer.write("/cell_a/observation", data, FIRST_NS + 1000 * (step + 1))
        writer.add_metadata("episode", {"seed": "7"})
    return tmp_path / "episode-7"


def test_rosbags_reads_topics_types_hashes_and_qos(bag):
    assert sorted(os.listdir(bag)) == ["episode-7_0.mcap", "metadata.yaml"]
    with Reader(bag) as reader:
        assert (reader.start_time, reader.message_count) == (FIRST_NS, 3)
        assert reader.duration == 2001  # the library counts the last nanosecond too
        connections = {item.topic: item for item in reader.connections}
        assert set(connections) == {"/cell_a/observation", "/cell_a/tf_static"}
        seen, static = connections["/cell_a/observation"], connections["/cell_a/tf_static"]
        assert (seen.msgtype, seen.msgcount) == (OBSERVATION, 2)
        assert seen.ext.offered_qos_profiles[0].reliability == QosReliability.BEST_EFFORT
        assert static.ext.offered_qos_profiles[0].durability == QosDurability.TRANSIENT_LOCAL
        # The hash of a standard type is known to the library from ROS's own definitions.
        store = get_typestore(Stores.ROS2_JAZZY)
        assert static.digest == store.hash_rihs01(TRANSFORMS)
        assert len(list(reader.messages())) == 3


def test_rosbags_decodes_our_messages_with_the_definitions_in_the_bag(bag):
    with AnyReader([bag]) as reader:
        messages: list[tuple[str, Any]] = [
            (connection.topic, reader.deserialize(data, connection.msgtype))
            for connection, _, data in reader.messages()
        ]
    assert messages[0][1].transforms[0].transform.translation.x == 0.25
    assert [message.step_index for topic, message in messages[1:]] == [0, 1]
    np.testing.assert_array_equal(messages[2][1].image, np.ones(18, np.float32))


def test_our_definitions_hash_to_what_ros_installed():
    store = get_typestore(Stores.ROS2_JAZZY)
    text = definition_of(OBSERVATION)
    known = set(store.fielddefs)
    types = get_types_from_msg(text, OBSERVATION)
    store.register({name: value for name, value in types.items() if name not in known})
    assert store.hash_rihs01(OBSERVATION) == type_hash_of(OBSERVATION)


def test_our_reader_leaves_the_namespace_out(bag):
    assert [item.topic for item in read_recording(bag)] == [
        "tf_static",
        "observation",
        "observation",
    ]
    assert [item.message.step_index for item in read_recording(bag, ["observation"])] == [0, 1]
    assert list(read_recording(bag, ["joint_states"])) == []
    assert read_metadata(bag) == {"episode": {"seed": "7"}}


def test_raw_bytes_come_back_as_they_were_written(bag):
    names = [topic.name for topic in bag_topics(bag)]
    raw = list(raw_messages(bag, names))
    assert raw[1].data == serialize_message(observation(0))
    assert [item.time_ns - FIRST_NS for item in raw] == [0, 1000, 2000]
    assert bag_topics(bag)[0].qos == (WEAK,)


def test_a_record_of_an_older_version_is_still_read(tmp_path):
    """A single file whose topics have neither slash nor QoS."""
    path = tmp_path / "old.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2", library="test")
        schema = writer.register_schema("std_msgs/msg/String", "ros2msg", b"string data")
        channel = writer.register_channel("observation", "cdr", schema)
        writer.add_message(channel, 5, serialize_message(String(data="old")), 5)
        writer.finish()
    [message] = read_recording(path, ["observation"])
    assert (message.topic, message.message.data) == ("observation", "old")
    [topic] = bag_topics(path)
    assert (topic.name, topic.qos) == ("/observation", ())


def test_an_existing_folder_is_kept_and_named(bag):
    with pytest.raises(RecordingError, match="episode-7 exists already and is kept"):
        BagWriter(bag)
    assert len(list(read_recording(bag))) == 3


def test_a_damaged_bag_is_refused_by_name(bag):
    file = bag / "episode-7_0.mcap"
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(RecordingError, match=r"episode-7_0\.mcap"):
        list(read_recording(bag))
    with pytest.raises(RecordingError, match=r"episode-7_0\.mcap"):
        bag_topics(bag)


def test_a_topic_that_the_bag_lacks_cannot_be_chosen(bag):
    topics = bag_topics(bag)
    assert [item.name for item in chosen_topics(topics, ["cell_a/observation"], [])] == [
        "/cell_a/observation"
    ]
    assert [item.name for item in chosen_topics(topics, [], ["/cell_a/observation"])] == [
        "/cell_a/tf_static"
    ]
    with pytest.raises(RecordingError, match="no topic /observation; it has /cell_a/observation"):
        chosen_topics(topics, ["observation"], [])


def test_unreadable_qos_is_no_qos():
    assert read_qos("") == read_qos("{") == read_qos("5") == ()
