# SPDX-License-Identifier: MIT
"""Specification of what is kept of a running episode: the referee's word, latencies, messages."""

from __future__ import annotations

import json

import cv2
import numpy as np
import pytest
from full_disk import files_limited_to

from equi_evaluation import episode_recorder
from equi_evaluation.episode_monitor import EpisodeMonitor
from equi_evaluation.episode_recorder import (
    EpisodeRecorder,
    ImageFormatError,
    encode_jpeg,
    rgb_image,
)
from equi_evaluation.recording import read_metadata, read_recording

MILLISECOND = 1_000_000
# CDR of `uint32 n`: four bytes of header (little endian), then the number.
ONE = bytes([0, 1, 0, 0, 1, 0, 0, 0])


def word(episode_id: str, success: bool, first_try="immovable") -> str:
    return json.dumps({"episode_id": episode_id, "success": success, "first_try": first_try})


def test_the_referee_decides_and_not_the_policys_own_opinion():
    monitor = EpisodeMonitor(ground_truth=True)
    monitor.on_referee(word("e", success=False))
    result = monitor.result("e", 1, "SUCCEEDED", "", 7, 9.0)
    assert (result.success, result.first_try) == (False, "immovable")
    assert result.label_source == "ground_truth"


def test_the_referees_word_on_another_episode_does_not_count():
    monitor = EpisodeMonitor(ground_truth=True)
    monitor.on_referee(word("before", success=True))
    result = monitor.result("e", 1, "SUCCEEDED", "", 7, 9.0)
    assert (result.success, result.first_try) == (False, "none")


def test_a_new_episode_forgets_the_referees_word_but_not_the_latencies():
    monitor = EpisodeMonitor(ground_truth=True)
    monitor.on_referee(word("e", success=True))
    monitor.on_diagnostic("policy", "forward_pass p50 [ms]", "2.5")
    monitor.reset()
    result = monitor.result("e", 1, "SUCCEEDED", "", 7, 9.0)
    assert not result.success
    assert result.latencies_ms == {"policy: forward pass": {"p50": 2.5}}


def test_only_latencies_of_policy_and_perception_are_kept():
    monitor = EpisodeMonitor(ground_truth=False)
    monitor.on_diagnostic("depth_fusion", "decode p99 [ms]", "4.0")
    monitor.on_diagnostic("depth_fusion", "observations", "12")
    monitor.on_diagnostic("rtde_driver", "cycle p99 [ms]", "8.0")
    assert monitor.result("e", 1, "STEP_LIMIT", "", 7, 9.0).latencies_ms == {
        "depth_fusion: decode": {"p99": 4.0}
    }


@pytest.mark.parametrize(
    ("outcome", "invalid"), [("STOPPED", True), ("REFUSED", True), ("FAULTED", False)]
)
def test_what_was_stopped_by_hand_or_never_began_says_nothing_about_the_policy(outcome, invalid):
    assert EpisodeMonitor(ground_truth=True).result("e", 1, outcome, "", 0, 0.0).invalid is invalid


@pytest.fixture
def record(monkeypatch) -> EpisodeRecorder:
    monkeypatch.setattr(episode_recorder, "definition_of", lambda name: "uint32 n")
    monkeypatch.setattr(episode_recorder, "type_hash_of", lambda name: "")
    types = {name: "p/msg/Count" for name in ("/count", "/state", "/notice")}
    return EpisodeRecorder(types, {"/state": 100 * MILLISECOND}, latched={"/notice": 1})


def test_only_what_comes_during_an_episode_is_recorded(record, tmp_path):
    record.write("/count", ONE, 1)
    record.start(tmp_path / "e")
    record.write("/count", ONE, 2)
    record.end({"outcome": "SUCCEEDED"})
    record.write("/count", ONE, 3)
    assert [item.log_time_ns for item in read_recording(tmp_path / "e")] == [2]
    assert read_metadata(tmp_path / "e") == {"episode": {"outcome": "SUCCEEDED"}}


def test_a_topic_with_a_period_is_thinned_out_and_the_others_are_not(record, tmp_path):
    record.start(tmp_path / "e")
    for at_ms in (1000, 1040, 1099, 1100, 1140):
        record.write("/state", ONE, at_ms * MILLISECOND)
        record.write("/count", ONE, at_ms * MILLISECOND)
    record.end({})
    times_ms = [
        item.log_time_ns // MILLISECOND for item in read_recording(tmp_path / "e", ["state"])
    ]
    assert times_ms == [1000, 1100]
    assert len(list(read_recording(tmp_path / "e", ["count"]))) == 5


def test_what_was_latched_before_an_episode_begins_its_record(record, tmp_path):
    two = ONE[:4] + bytes([2, 0, 0, 0])
    record.write("/notice", ONE, 1)
    record.write("/notice", two, 2)
    record.start(tmp_path / "e", now_ns=7)
    record.end({})
    [kept] = read_recording(tmp_path / "e")
    assert (kept.topic, kept.log_time_ns, kept.message.n) == ("notice", 7, 2)


def test_ending_a_record_twice_does_no_harm(record, tmp_path):
    record.start(tmp_path / "e")
    record.end({"outcome": "SUCCEEDED"})
    record.end({"outcome": "interrupted"})
    assert not record.is_open
    assert read_metadata(tmp_path / "e")["episode"]["outcome"] == "SUCCEEDED"


def test_the_padding_of_an_images_rows_is_left_out():
    rows = np.arange(2 * 8, dtype=np.uint8).reshape(2, 8)
    image = rgb_image("rgb8", (2, 2), 8, rows.tobytes())
    np.testing.assert_array_equal(image, rows[:, :6].reshape(2, 2, 3))


@pytest.mark.parametrize(
    ("encoding", "step", "size", "word"),
    [("bgr8", 6, 12, "bgr8"), ("mono8", 2, 4, "rgb8"), ("rgb8", 6, 11, "11 bytes")],
)
def test_an_image_of_another_kind_is_refused_with_a_sentence(encoding, step, size, word):
    with pytest.raises(ImageFormatError, match=word):
        rgb_image(encoding, (2, 2), step, bytes(size))


def test_a_coded_picture_keeps_its_colours():
    red = np.zeros((16, 16, 3), np.uint8)
    red[..., 0] = 255
    decoded = cv2.imdecode(np.frombuffer(encode_jpeg(red), np.uint8), cv2.IMREAD_COLOR)
    blue, green, red_again = decoded[8, 8]
    assert red_again > 240
    assert max(blue, green) < 20


def test_a_full_disk_ends_the_recording_but_not_the_episode_and_leaves_no_half_bag(
    record, tmp_path
):
    big = ONE + np.random.default_rng(0).bytes(300_000)
    record.start(tmp_path / "e")
    with files_limited_to(1_000_000):
        for at in range(40):
            record.write("/count", big, at)
        problem = record.end({"outcome": "SUCCEEDED"})
    assert "File too large" in problem
    assert "make room" in problem
    assert not (tmp_path / "e").exists()

    record.start(tmp_path / "next")
    record.write("/count", ONE, 1)
    assert record.end({}) == ""
    assert len(list(read_recording(tmp_path / "next"))) == 1


def test_a_disk_that_is_full_at_the_end_leaves_no_half_bag_either(record, tmp_path):
    record.start(tmp_path / "e")
    record.write("/count", ONE, 1)
    with files_limited_to(64):
        assert record.end({}) != ""
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize("text", ["", "{", "[1]", "9" * 5000, "null", '{"episode_id": []}'])
def test_a_referee_that_talks_nonsense_is_ignored(text):
    monitor = EpisodeMonitor(ground_truth=True)
    monitor.on_referee('{"episode_id": "e", "success": true, "first_try": "nonsense"}')
    monitor.on_diagnostic("policy", "inference p50 [ms]", "many")
    monitor.on_referee(text)
    result = monitor.result("e", 1, "SUCCEEDED", "", 7, 9.0)
    assert result.first_try == "none"
    assert result.latencies_ms in ({}, {"policy: inference": {}})
