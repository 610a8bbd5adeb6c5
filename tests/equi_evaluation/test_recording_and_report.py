# SPDX-License-Identifier: MIT
"""Specification of recordings and report: bytes go in and come out, and the page is one file."""

from __future__ import annotations

import re

import imageio_ffmpeg
import numpy as np
import pytest
from mcap_ros2._dynamic import generate_dynamic, serialize_dynamic

from equi_evaluation.bag.writer import BagWriter
from equi_evaluation.episode_video import filmstrip, load_frames, write_video
from equi_evaluation.recording import (
    RecordingError,
    full_definition,
    read_metadata,
    read_recording,
    referenced_types,
)
from equi_evaluation.report import write_report
from equi_evaluation.results import EpisodeResult, ResultStore

OBSERVATION = """
string episode_id
uint32 step_index
uint64 sequence
uint32 channels
uint32 height
uint32 width
float32[] image
"""
COMMAND = """
uint32 step_index
uint64 observation_sequence
float64 gripper_closedness
geometry_msgs/Vector3 translation
float64 yaw_rad
================================================================================
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
"""
SECOND = 1_000_000_000


def coded(name: str, definition: str, values: dict) -> bytes:
    """Serialise a message by its definition, independently of our code."""
    return bytes(serialize_dynamic(name, definition)[name](values))


def record(path, steps=3):
    with BagWriter(path) as recorder:
        recorder.add_topic("observation", "p/msg/Observation", OBSERVATION)
        recorder.add_topic("delta_command", "p/msg/Command", COMMAND)
        for step in range(steps):
            image = np.full((2, 84, 84), 0.2, dtype=np.float32)
            image[0, 30:40, 30 + step : 40 + step] = 0.15
            seen = {
                "episode_id": "e",
                "step_index": step,
                "sequence": 10 + step,
                "channels": 2,
                "height": 84,
                "width": 84,
                "image": image.ravel().tolist(),
            }
            asked = {
                "step_index": step,
                "observation_sequence": 10 + step,
                "gripper_closedness": 1.0,
                "translation": {"x": 0.01, "y": -0.05, "z": 0.0},
                "yaw_rad": 0.1,
            }
            recorder.write(
                "observation", coded("p/msg/Observation", OBSERVATION, seen), (2 * step) * SECOND
            )
            recorder.write(
                "delta_command", coded("p/msg/Command", COMMAND, asked), (2 * step + 1) * SECOND
            )
        recorder.add_metadata("episode", {"seed": "7"})
    return path


def test_a_record_gives_back_the_messages_in_order(tmp_path):
    path = record(tmp_path / "e")
    messages = list(read_recording(path))
    assert [m.topic for m in messages] == ["observation", "delta_command"] * 3
    assert [m.message.step_index for m in messages] == [0, 0, 1, 1, 2, 2]
    assert messages[1].message.translation.y == -0.05
    assert read_metadata(path) == {"episode": {"seed": "7"}}


def test_an_unannounced_topic_and_a_missing_record_are_refused(tmp_path):
    with (
        BagWriter(tmp_path / "a") as recorder,
        pytest.raises(RecordingError, match="other"),
    ):
        recorder.write("other", b"", 0)
    with pytest.raises(RecordingError, match=r"nothing\.mcap"):
        list(read_recording(tmp_path / "nothing.mcap"))


def test_a_definition_brings_all_that_it_contains_once():
    texts = {
        "a/msg/Top": "b/Mid one\nMid2 two\nuint8 X=1\nb/Mid[] three\nstring<=4 s",
        "b/msg/Mid": "Leaf leaf",
        "a/msg/Mid2": "b/Leaf leaf",
        "b/msg/Leaf": "int32 v",
    }
    assert referenced_types(texts["a/msg/Top"], "a") == ["b/msg/Mid", "a/msg/Mid2", "b/msg/Mid"]
    whole = full_definition("a/msg/Top", texts)
    assert whole.count("MSG: ") == 3
    assert {"MSG: b/Mid", "MSG: a/Mid2", "MSG: b/Leaf"} <= set(whole.splitlines())
    generate_dynamic("a/msg/Top", whole)  # and the decoder accepts it
    with pytest.raises(RecordingError, match="b/msg/Leaf"):
        full_definition("b/msg/Mid", {"b/msg/Mid": "Leaf leaf"})


def test_filmstrip_and_video_are_made_of_a_recording(tmp_path):
    frames = load_frames(record(tmp_path / "e"))
    assert len(frames.observations) == 3
    strip = filmstrip(frames)
    assert strip is not None
    assert strip.shape[1] > 3 * 150
    path = write_video(frames, "title", tmp_path / "e.mp4")
    header = next(imageio_ffmpeg.read_frames(str(path)))
    assert header["codec"] == "h264"
    assert header["pix_fmt"].startswith("yuv420p")
    assert header["duration"] == pytest.approx(3 / 8, abs=0.01)  # one frame per step, at 8 Hz


def test_a_recording_without_observations_makes_no_video(tmp_path):
    frames = load_frames(record(tmp_path / "e", steps=0))
    assert write_video(frames, "title", tmp_path / "e.mp4") is None
    assert filmstrip(frames) is None


def test_the_report_is_one_file_and_shows_the_metrics(tmp_path):
    settings = {"task": "block_picking", "cell": "sim", "driven_by": "expert"}
    store = ResultStore(tmp_path, {**settings, "episodes": 4, "seed": 0, "balanced": False})
    record(tmp_path / "e0")
    (tmp_path / "e0.mp4").touch()
    for number in range(4):
        good = number != 1
        store.add(
            EpisodeResult(
                f"e{number}",
                number,
                "SUCCEEDED" if good else "STEP_LIMIT",
                "" if good else "50 steps <without> success",
                good,
                "ground_truth",
                "movable",
                9,
                12.0,
                record="e0" if number == 0 else "",
                latencies_ms={"policy: inference": {"p50": 2.0, "p99": 4.0}},
            )
        )
    page = write_report(tmp_path).read_text()
    assert "75%" in page
    assert "3 / 4" in page
    assert "50 steps &lt;without&gt; success" in page
    assert "expert" in page
    assert "policy: inference of the network" in page
    assert re.search(r"written \d{4}-\d\d-\d\d \d\d:\d\d UTC", page)
    assert "data:image/jpeg;base64," in page
    links = re.findall(r"""(?:src|href)=['"](?!data:|#)([^'"]+)""", page)
    assert links == ["e0.mp4", "e0"], "only what lies beside it is linked, nothing is fetched"
