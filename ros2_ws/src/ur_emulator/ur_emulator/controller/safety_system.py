# SPDX-License-Identifier: MIT
"""The controller's power and safety states, with the delays of the real one.

Protective stop: the arm decelerates, the program pauses; it can be unlocked some seconds later.
Emergency stop: the arm decelerates, power goes off, the program stops; then release, power on and
brake release follow one another. Every delay can be scaled for tests.
"""

from __future__ import annotations

from dataclasses import dataclass

from ur_emulator.constants import SAFETY_STATUS_BITS, RobotMode, SafetyMode


@dataclass(frozen=True)
class Delays:
    """Seconds that the real controller takes (documentation and experience; not measured)."""

    unlock_s: float = 5.0
    power_on_s: float = 4.0
    brake_release_s: float = 3.0
    power_off_s: float = 0.5
    boot_s: float = 20.0
    gripper_activation_s: float = 2.5

    def scaled(self, factor: float) -> Delays:
        """The same delays, shorter or longer."""
        return Delays(*(value * factor for value in vars(self).values()))


class SafetySystem:
    """Robot mode and safety mode; time is handed in."""

    def __init__(self, delays: Delays, now_s: float, *, powered: bool = True) -> None:
        self._delays = delays
        self.robot_mode = RobotMode.RUNNING if powered else RobotMode.POWER_OFF
        self.safety_mode = SafetyMode.NORMAL
        self._reduced = False
        self._stopped_since_s = now_s
        self._pending: tuple[float, RobotMode] | None = None

    @property
    def normal(self) -> bool:
        """Whether motion is allowed."""
        return self.moving_mode and self.robot_mode is RobotMode.RUNNING

    @property
    def moving_mode(self) -> bool:
        """Whether the safety mode is one in which the arm may move: normal or reduced."""
        return self.safety_mode in (SafetyMode.NORMAL, SafetyMode.REDUCED)

    @property
    def released_mode(self) -> SafetyMode:
        """The mode after a stop has been released."""
        return SafetyMode.REDUCED if self._reduced else SafetyMode.NORMAL

    def set_reduced(self, on: bool) -> None:
        """A safety input or plane switches reduced mode; takes effect at once or after a stop."""
        self._reduced = on
        if self.moving_mode:
            self.safety_mode = self.released_mode

    def violate(self, now_s: float) -> None:
        """A limit of the safety configuration is broken: power off, safety must be restarted."""
        if self.safety_mode is not SafetyMode.ROBOT_EMERGENCY_STOP:
            self.safety_mode = SafetyMode.VIOLATION
            self._pending = (now_s + self._delays.power_off_s, RobotMode.POWER_OFF)

    def restart(self) -> str:
        """Dashboard answer to "restart safety": clears a violation, the arm has no power."""
        if self.safety_mode is SafetyMode.VIOLATION:
            self.safety_mode = self.released_mode
            self.robot_mode = RobotMode.POWER_OFF
            self._pending = None
        return "Restarting safety"

    @property
    def status_bits(self) -> int:
        """RTDE safety_status_bits."""
        return SAFETY_STATUS_BITS[self.safety_mode]

    def advance(self, now_s: float) -> None:
        """Finish transitions whose time has come."""
        if self._pending is not None and now_s >= self._pending[0]:
            self.robot_mode = self._pending[1]
            self._pending = None

    def protective_stop(self, now_s: float) -> None:
        """A protective stop happens (ignored while an emergency stop is active)."""
        if self.moving_mode:
            self.safety_mode = SafetyMode.PROTECTIVE_STOP
            self._stopped_since_s = now_s

    def emergency_stop(self, now_s: float) -> None:
        """The emergency stop is pressed."""
        self.safety_mode = SafetyMode.ROBOT_EMERGENCY_STOP
        self._stopped_since_s = now_s
        self._pending = (now_s + self._delays.power_off_s, RobotMode.POWER_OFF)

    def release_emergency_stop(self, now_s: float) -> bool:
        """The emergency stop is released; False if it was not pressed."""
        if self.safety_mode is not SafetyMode.ROBOT_EMERGENCY_STOP:
            return False
        self.safety_mode = self.released_mode
        self.robot_mode = RobotMode.POWER_OFF
        self._pending = None
        return True

    def unlock(self, now_s: float) -> str:
        """Dashboard answer to "unlock protective stop"."""
        if self.safety_mode is not SafetyMode.PROTECTIVE_STOP:
            return "Protective stop releasing"
        if now_s - self._stopped_since_s < self._delays.unlock_s:
            return "Cannot unlock protective stop until 5s after occurrence"
        self.safety_mode = self.released_mode
        return "Protective stop releasing"

    def power_on(self, now_s: float) -> str:
        """Dashboard answer to "power on"."""
        if self.moving_mode and self.robot_mode is RobotMode.POWER_OFF:
            self.robot_mode = RobotMode.POWER_ON
            self._pending = (now_s + self._delays.power_on_s, RobotMode.IDLE)
        return "Powering on"

    def power_off(self, now_s: float) -> str:
        """Dashboard answer to "power off"."""
        self.robot_mode = RobotMode.POWER_OFF
        self._pending = None
        return "Powering off"

    def release_brakes(self, now_s: float) -> str:
        """Dashboard answer to "brake release"; powers on first if need be, as the robot does."""
        if not self.moving_mode or self.robot_mode is RobotMode.RUNNING:
            return "Brake releasing"
        if self._pending is not None and self._pending[1] is RobotMode.RUNNING:
            return "Brake releasing"  # already under way
        wait_s = self._delays.brake_release_s
        if self.robot_mode is not RobotMode.IDLE:
            wait_s += self._delays.power_on_s
        self._pending = (now_s + wait_s, RobotMode.RUNNING)
        return "Brake releasing"
