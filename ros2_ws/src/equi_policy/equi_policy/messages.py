# SPDX-License-Identifier: MIT
"""Messages -> what the session takes. Duck typing: messages of ROS, or decoded from a record."""

from __future__ import annotations

from typing import Any

import numpy as np

from equi_core.action import MetricDelta
from equi_policy.session import ExecutedStep, ReceivedObservation
from equi_ros.stamps import nanoseconds

REJECTED = 2
"""equi_interfaces/ExecutedCommand.REJECTED; a record is decoded without the message classes."""


def received_observation(message: Any) -> ReceivedObservation:
    """An equi_interfaces/Observation; ValueError if its size and its shape disagree."""
    shape = (message.channels, message.height, message.width)
    image = np.asarray(message.image, dtype=np.float32)
    if image.size != int(np.prod(shape)):
        raise ValueError(f"image has {image.size} values; {shape} needs {int(np.prod(shape))}")
    return ReceivedObservation(
        episode_id=message.episode_id,
        step_index=message.step_index,
        sequence=message.sequence,
        stamp_ns=nanoseconds(message.header.stamp),
        contract_sha256=message.contract_sha256,
        image=image.reshape(shape),
    )


def executed_step(message: Any) -> ExecutedStep:
    """An equi_interfaces/ExecutedCommand."""
    step = message.translation
    return ExecutedStep(
        episode_id=message.requested.episode_id,
        step_index=message.requested.step_index,
        delta=MetricDelta(message.gripper_closedness, (step.x, step.y, step.z), message.yaw_rad),
        moved=message.outcome != REJECTED,
        end_ns=nanoseconds(message.header.stamp),
    )
