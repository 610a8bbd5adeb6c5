# SPDX-License-Identifier: MIT
"""Messages -> what the session takes. Duck typing: messages of ROS, or decoded from a record."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from equi_core.action import MetricDelta
from equi_policy.session import ExecutedStep, ReceivedObservation
from equi_ros.message_checks import require_plausible
from equi_ros.stamps import nanoseconds

_LONGEST_STEP_M = 1.0
"""Far beyond what any contract allows; only tells a step from nonsense."""
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
    """An equi_interfaces/ExecutedCommand; MalformedMessage if nobody can have executed it."""
    step = message.translation
    require_plausible("translation", (step.x, step.y, step.z), _LONGEST_STEP_M)
    require_plausible("yaw_rad", (message.yaw_rad,), math.pi)
    require_plausible("gripper_closedness", (message.gripper_closedness,), 1.0 + 1e-6)
    return ExecutedStep(
        episode_id=message.requested.episode_id,
        step_index=message.requested.step_index,
        delta=MetricDelta(message.gripper_closedness, (step.x, step.y, step.z), message.yaw_rad),
        moved=message.outcome != REJECTED,
        end_ns=nanoseconds(message.header.stamp),
    )
