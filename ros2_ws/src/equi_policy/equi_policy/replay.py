# SPDX-License-Identifier: MIT
"""Replays a recorded episode through a policy and compares its commands bit by bit.

    ros2 run equi_policy replay runs/evaluation/.../block_picking-7-ab1 --model models/block_picking

The policy is deterministic and its state explicit, so the same observations and the same reports
of what was executed must give the same commands. A difference means another model, another
version of the code, or a message that the record does not hold.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from equi_policy.deployed_policy import DeployedPolicy
from equi_policy.messages import executed_step, received_observation
from equi_policy.session import Act, PolicySession, ReceivedObservation, SessionLimits

_TOPICS = ("observation", "delta_command", "executed_command")


class ReplayError(ValueError):
    """A record that holds no episode to replay."""


@dataclass(frozen=True)
class ReplayedStep:
    """One step: what was sent then, and what the policy says now."""

    step_index: int
    recorded: tuple[float, ...]
    """closedness, x, y, z, yaw."""
    replayed: tuple[float, ...] | None
    """None if the policy would not have acted."""

    @property
    def equal(self) -> bool:
        """Whether both are the same numbers, bit by bit."""
        return self.recorded == self.replayed


def replay(record: Path, policy: Any) -> list[ReplayedStep]:
    """Feed a record's observations and reports to a policy in their order."""
    events = list(_events(record))
    observations = {m.sequence: m for topic, m in events if topic == "observation"}
    commands = [m for topic, m in events if topic == "delta_command"]
    if not commands:
        raise ReplayError(f"{record} holds no command; record an episode with --record")
    executed = {
        m.requested.observation_sequence: m for topic, m in events if topic == "executed_command"
    }
    session: PolicySession[Any] = PolicySession(policy, SessionLimits(max_observation_age_s=1e9))
    session.begin(commands[0].episode_id)
    steps = []
    for command in commands:
        message = observations.get(command.observation_sequence)
        if message is None:
            raise ReplayError(
                f"observation {command.observation_sequence} of step {command.step_index} is not "
                "in the record"
            )
        observation = _named_anew(received_observation(message), policy)
        answer = session.offer(observation, observation.stamp_ns)
        replayed = None
        if isinstance(answer, Act):
            delta = answer.delta
            replayed = (delta.closedness, *delta.step_m, delta.yaw_rad)
        steps.append(ReplayedStep(command.step_index, _step_of(command), replayed))
        report = executed.get(command.observation_sequence)
        if report is None:
            break
        session.executed(executed_step(report))
    return steps


def _named_anew(observation: ReceivedObservation, policy: Any) -> ReceivedObservation:
    """Records of older versions name the weights instead of the whole contract."""
    contract = policy.contract
    if observation.contract_sha256 == contract.weights_sha256:
        return dataclasses.replace(observation, contract_sha256=contract.sha256)
    return observation


def _events(record: Path) -> Iterator[tuple[str, Any]]:
    if record.is_dir():  # a rosbag2 bag
        files = sorted(record.glob("*.mcap"))
        if len(files) != 1:
            raise ReplayError(f"{record} holds {len(files)} MCAP files; a record has exactly one")
        record = files[0]
    if not record.is_file():
        raise ReplayError(f"no record at {record}")
    try:
        yield from _messages(record)
    except Exception as error:  # damage ends in a dozen kinds of errors of three libraries
        reason = " ".join(str(error).split())[:200]
        raise ReplayError(
            f"{record} is damaged, cut off or not an MCAP record ({type(error).__name__}: {reason})"
        ) from error


def _messages(record: Path) -> Iterator[tuple[str, Any]]:
    with record.open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        summary = reader.get_summary()
        channels = [] if summary is None else summary.channels.values()
        # Recorded with the namespace of the cell in front; older records have no slash at all.
        names = {item.topic: item.topic.rpartition("/")[2] for item in channels}
        topics = [topic for topic, name in names.items() if name in _TOPICS]
        if topics:
            for _, channel, _, message in reader.iter_decoded_messages(topics=topics):
                yield names[channel.topic], message


def _step_of(command: Any) -> tuple[float, ...]:
    step = command.translation
    return (command.gripper_closedness, step.x, step.y, step.z, command.yaw_rad)


def main(arguments: list[str] | None = None) -> int:
    """Entry point; 0 if every command is bit-equal."""
    parser = argparse.ArgumentParser(
        prog="replay",
        description="Replay a recorded episode through a policy, comparing bit by bit.",
        epilog="Example: ros2 run equi_policy replay runs/e --model models/block_picking",
    )
    parser.add_argument("record", type=Path, help="bag (folder) or MCAP file of one episode")
    parser.add_argument("--model", type=Path, required=True, help="policy folder")
    parsed = parser.parse_args(arguments)
    try:
        steps = replay(parsed.record, DeployedPolicy.load(parsed.model, allow_unsigned=True))
    except ValueError as error:  # record, model or contract
        sys.stderr.write(f"{error}\n")
        return 2
    different = [step for step in steps if not step.equal]
    for step in different:
        now = step.replayed or "no command: this policy refuses the observation"
        sys.stdout.write(f"step {step.step_index}: sent {step.recorded}, now {now}\n")
    sys.stdout.write(f"{len(steps) - len(different)} of {len(steps)} commands are bit-equal\n")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
