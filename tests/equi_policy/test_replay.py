# SPDX-License-Identifier: MIT
"""Law: a recorded episode replays bit by bit; another model is noticed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from mcap.writer import Writer
from mcap_ros2._dynamic import serialize_dynamic

from equi_core.action import MetricDelta
from equi_policy.bench_policy_step import write_random_policy
from equi_policy.deployed_policy import DeployedPolicy
from equi_policy.replay import ReplayError, main, replay
from equi_policy.session import Act, ExecutedStep, PolicySession, ReceivedObservation

SECOND = 1_000_000_000
HEADER = """std_msgs/Header header"""
INNER = """
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
================================================================================
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
"""
OBSERVATION = f"""{HEADER}
string contract_sha256
string episode_id
uint32 step_index
uint64 sequence
uint32 channels
uint32 height
uint32 width
float32[] image
{INNER}"""
COMMAND_FIELDS = f"""{HEADER}
string episode_id
uint32 step_index
uint64 observation_sequence
float64 gripper_closedness
geometry_msgs/Vector3 translation
float64 yaw_rad
"""
COMMAND = COMMAND_FIELDS + INNER
EXECUTED = f"""{HEADER}
equi_interfaces/DeltaCommand requested
uint8 outcome
float64 gripper_closedness
geometry_msgs/Vector3 translation
float64 yaw_rad
================================================================================
MSG: equi_interfaces/DeltaCommand
{COMMAND_FIELDS}{INNER}"""


class Recorder:
    """Writes messages as ROS would serialise them, by a library that is not ours."""

    def __init__(self, path) -> None:
        self._file = path.open("wb")
        self._writer = Writer(self._file)
        self._writer.start(profile="ros2", library="test")
        self._channels, self._coders, self._time = {}, {}, 0
        for topic, name, text in (
            ("observation", "equi_interfaces/msg/Observation", OBSERVATION),
            ("delta_command", "equi_interfaces/msg/DeltaCommand", COMMAND),
            ("executed_command", "equi_interfaces/msg/ExecutedCommand", EXECUTED),
        ):
            schema = self._writer.register_schema(name, "ros2msg", text.encode())
            self._channels[topic] = self._writer.register_channel(topic, "cdr", schema)
            self._coders[topic] = serialize_dynamic(name, text)[name]

    def write(self, topic, values) -> None:
        self._time += SECOND // 10
        self._writer.add_message(
            self._channels[topic], self._time, bytes(self._coders[topic](values)), self._time
        )

    def close(self) -> None:
        self._writer.finish()
        self._file.close()


def stamp(step, offset=0.0):
    return {"stamp": {"sec": 10 + step, "nanosec": round(offset * SECOND)}, "frame_id": "base_link"}


def vector(values):
    return dict(zip("xyz", values, strict=True))


def record_episode(path, policy, steps=12, rejected=(4,)):
    """Run a session on random images, with clipped and rejected commands, and record it."""
    rng = np.random.default_rng(0)
    session = PolicySession(policy)
    session.begin("e")
    recorder = Recorder(path)
    sequence, step = 0, 0
    pending = set(rejected)
    while step < steps:
        image = rng.uniform(0.1, 0.3, (2, 84, 84)).astype(np.float32)
        image[1] = float(step % 2)
        sequence += 1
        # Time passes with every observation, also when a step is decided twice.
        now = sequence * SECOND
        observation = ReceivedObservation("e", step, sequence, now, policy.contract.sha256, image)
        act = session.offer(observation, now)
        assert isinstance(act, Act)
        recorder.write(
            "observation",
            {
                "header": {"stamp": {"sec": sequence, "nanosec": 0}, "frame_id": "base_link"},
                "contract_sha256": policy.contract.weights_sha256,
                "episode_id": "e",
                "step_index": step,
                "sequence": sequence,
                "channels": 2,
                "height": 84,
                "width": 84,
                "image": image.ravel().tolist(),
            },
        )
        command = {
            "header": {"stamp": {"sec": sequence, "nanosec": 1}, "frame_id": "base_link"},
            "episode_id": "e",
            "step_index": step,
            "observation_sequence": sequence,
            "gripper_closedness": act.delta.closedness,
            "translation": vector(act.delta.step_m),
            "yaw_rad": act.delta.yaw_rad,
        }
        recorder.write("delta_command", command)
        moved = step not in pending
        pending.discard(step)
        x, y, z = act.delta.step_m
        done = MetricDelta(act.delta.closedness, (x / 2, y, max(z, -0.01)), act.delta.yaw_rad)
        session.executed(ExecutedStep("e", step, done, moved, now + 2))
        recorder.write(
            "executed_command",
            {
                "header": {"stamp": {"sec": sequence, "nanosec": 2}, "frame_id": "base_link"},
                "requested": command,
                "outcome": 1 if moved else 2,
                "gripper_closedness": done.closedness,
                "translation": vector(done.step_m),
                "yaw_rad": done.yaw_rad,
            },
        )
        step += moved
    recorder.close()


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    return write_random_policy(folder)


def test_a_recorded_episode_replays_bit_by_bit(tmp_path, model):
    path = tmp_path / "e.mcap"
    record_episode(path, DeployedPolicy.load(model))
    steps = replay(path, DeployedPolicy.load(model))
    assert [step.step_index for step in steps] == [0, 1, 2, 3, 4, 4, *range(5, 12)]
    assert all(step.equal for step in steps)
    assert main([str(path), "--model", str(model)]) == 0


def test_other_weights_are_noticed(tmp_path, model):
    path = tmp_path / "e.mcap"
    record_episode(path, DeployedPolicy.load(model))
    other = tmp_path / "other"
    other.mkdir()
    policy = DeployedPolicy.load(write_random_policy(other, seed=1))
    # Even if somebody makes the digests agree, the commands do not.
    policy.contract = dataclasses.replace(
        policy.contract, weights_sha256=DeployedPolicy.load(model).contract.weights_sha256
    )
    assert not any(step.equal for step in replay(path, policy))


def test_a_model_that_refuses_the_observations_is_said_to_do_so(tmp_path, model, capsys):
    path = tmp_path / "e.mcap"
    record_episode(path, DeployedPolicy.load(model))
    other = tmp_path / "other"
    other.mkdir()
    assert main([str(path), "--model", str(write_random_policy(other, seed=1))]) == 1
    shown = capsys.readouterr().out
    assert "now no command: this policy refuses the observation" in shown
    assert "None" not in shown


def test_a_record_without_an_episode_is_refused(tmp_path, model):
    Recorder(tmp_path / "empty.mcap").close()
    with pytest.raises(ReplayError, match="no command"):
        replay(tmp_path / "empty.mcap", DeployedPolicy.load(model))
    assert main([str(tmp_path / "nothing.mcap"), "--model", str(model)]) == 2
