# SPDX-License-Identifier: MIT
"""How finely the world is simulated, when a move counts as finished, and where time was spent."""

from __future__ import annotations

from dataclasses import dataclass, field

from equi_rl.sim.motion import MotionLimits
from equi_rl.sim.stiff_arm import StiffArm


@dataclass(frozen=True)
class PhysicsConfig:
    """How finely the world is simulated and when a move counts as finished."""

    rate_hz: int = 240
    steps_per_command: int = 2
    """Joint targets are streamed at rate_hz / this: 120 Hz, about a UR5's own rate."""
    free_solver_iterations: int = 20
    """Enough to carry the arm through free space."""
    contact_solver_iterations: int = 40
    """While the fingers squeeze something or the arm feels resistance."""
    resisted_lag_m: float = 0.0015
    """A TCP that trails its target by more than this feels resistance."""
    blocked_lag_m: float = 0.006
    """A moving TCP that trails its target by more than this is blocked."""
    arrived_m: float = 0.0004
    """A TCP that comes to rest farther than this from its target was blocked."""
    settle_steps: int = 48
    """Most physics steps spent waiting for rest after a move."""
    settled_joint_error_rad: float = 4e-4
    settled_joint_speed_rad_s: float = 0.02
    settled_object_speed_m_s: float = 0.01
    gripper_steps: int = 144
    """Most physics steps that one gripper command may take."""
    motion: MotionLimits = field(default_factory=MotionLimits)
    stiff_arm: StiffArm | None = None
    """An arm that notices contact as the robot does; None: one that gives way."""

    @property
    def step_s(self) -> float:
        """Duration of one physics step [s]."""
        return 1.0 / self.rate_hz

    @property
    def tick_s(self) -> float:
        """Between two joint targets [s]."""
        return self.steps_per_command * self.step_s


@dataclass
class TimeSplit:
    """Seconds spent, and physics steps taken, since the last `clear`."""

    kinematics_s: float = 0.0
    physics_s: float = 0.0
    rendering_s: float = 0.0
    physics_steps: int = 0

    def add(self, other: TimeSplit) -> None:
        """Count another one's amounts too."""
        self.kinematics_s += other.kinematics_s
        self.physics_s += other.physics_s
        self.rendering_s += other.rendering_s
        self.physics_steps += other.physics_steps

    def clear(self) -> None:
        """Start counting anew."""
        self.kinematics_s = self.physics_s = self.rendering_s = 0.0
        self.physics_steps = 0
