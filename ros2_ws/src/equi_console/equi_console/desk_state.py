# SPDX-License-Identifier: MIT
"""Everything the page shows, as plain data. The node writes it, the page reads it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equi_console.scene.placement import Placement
from equi_core.files.scene_layout import SceneLayout

FloatArray = NDArray[np.float64]

IDLE, ACTIVE, HOLD, FAULT, PAUSED = range(5)
DRIVER_STATES = ("IDLE", "ACTIVE", "HOLD", "FAULT", "PAUSED")
"""By the number in equi_interfaces/DriverState."""
NODES = ("depth_fusion", "policy", "rtde_driver")
_LATENCY_SAMPLES = 60


@dataclass(frozen=True)
class RobotView:
    """The newest robot state."""

    driver_state: int
    moving: bool
    episode_id: str
    steps: int
    tcp_m: tuple[float, float, float]
    yaw_rad: float
    joints_rad: tuple[float, ...]
    opening: float
    holding: bool
    gripper_connected: bool
    heard_s: float
    """Monotonic time of its arrival [s]."""


@dataclass(frozen=True)
class SafetyView:
    """The newest safety status."""

    driver_state: int
    fault: int
    fault_name: str
    reasons: tuple[str, ...]
    operator_action: str
    speed_slider: float
    speed_scaling: float
    fault_count: int = 0
    """Number of the fault since the driver started: tells two of the same name apart."""

    @property
    def i_know(self) -> str:
        """Who runs a mode without its evidence, in words; empty if nobody does."""
        return next((text for text in self.reasons if text.startswith("i_know:")), "")

    @property
    def causes(self) -> tuple[str, ...]:
        """The reasons without what has a banner of its own."""
        return tuple(text for text in self.reasons if not text.startswith(("i_know:", "shadow:")))

    @property
    def is_shadow(self) -> bool:
        """Whether the driver only listens."""
        return any(text.startswith("shadow:") for text in self.reasons)


@dataclass(frozen=True)
class PerceptionView:
    """The newest perception status."""

    ready: bool
    reasons: tuple[str, ...]
    ages_s: Mapping[str, float]


@dataclass(frozen=True)
class StepView:
    """A step: asked for, or executed."""

    step_index: int
    step_m: tuple[float, float, float]
    yaw_rad: float
    closedness: float
    outcome: str = ""
    reasons: tuple[str, ...] = ()


@dataclass
class DeskState:
    """What is known now. Every field is replaced as a whole, never changed in place."""

    cell: str = ""
    task: str = ""
    simulated: bool = True
    calibration: str = "not looked at"
    robot: RobotView | None = None
    safety: SafetyView | None = None
    perception: PerceptionView | None = None
    requested: StepView | None = None
    executed: StepView | None = None
    lifecycle: Mapping[str, str] = field(default_factory=dict)
    """State label of each node; `unreachable` if it does not answer."""
    observation: NDArray[np.float32] | None = None
    observation_number: int = 0
    """Counts observations; a page draws when it has changed."""
    beliefs: tuple[tuple[float, float, float], ...] = ()
    """Place (x, y) of each object relative to the gripper [m], and its probability."""
    placement: Placement | None = None
    """What the scene helper says of the next scene; None: it has none to compare with."""
    layout: SceneLayout | None = None
    """The next scene; its hidden property is not for the page."""
    gripper_at_m: tuple[float, float] = (0.0, 0.0)
    """Where the middle of the observation is in the task frame [m]."""
    rates_hz: Mapping[str, float] = field(default_factory=dict)
    """Of the cameras' images."""
    latencies_ms: dict[str, deque[float]] = field(default_factory=dict)

    def add_latency(self, stage: str, value_ms: float) -> None:
        """Append to the strip chart of a stage."""
        strip = self.latencies_ms.setdefault(stage, deque(maxlen=_LATENCY_SAMPLES))
        strip.append(value_ms)

    @property
    def robot_age_s(self) -> float:
        """Time since the driver was heard [s]; infinite if never."""
        return float("inf") if self.robot is None else time.monotonic() - self.robot.heard_s

    @property
    def camera_words(self) -> str:
        """Rates of the images and ages of the clouds; without either, what to do."""
        ages = {} if self.perception is None else self.perception.ages_s
        rates = ", ".join(f"{name} {rate:.1f} Hz" for name, rate in self.rates_hz.items())
        old = ", ".join(f"{name} {age:.2f} s old" for name, age in ages.items())
        if not rates and not old:
            return (
                "none is heard; start them (cameras:=realsense), and compare their topics with "
                "the cell file (ros2 topic list)"
            )
        return f"{rates or 'no images'}; clouds: {old or 'none'}"

    @property
    def driver_word(self) -> str:
        """State of the driver in a word."""
        if self.robot is None or self.robot_age_s > 2.0:
            return "SILENT"
        return DRIVER_STATES[self.robot.driver_state]
