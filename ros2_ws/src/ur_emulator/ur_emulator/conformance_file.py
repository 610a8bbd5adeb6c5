# SPDX-License-Identifier: MIT
"""What was measured on one robot: the file that `equi-conformance` writes and the emulator loads.

JSON with the keys of `ConformanceFile`. Only `robot` is required; a part that is missing or null
was not measured. Unknown keys, numbers out of range and anything that is not finite are refused.
"""

from __future__ import annotations

import json
import math
import types
import typing
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin

FORMAT_VERSION = 1
MAX_BYTES = 1_000_000
MODEL_NAMES = ("ur3", "ur5", "ur10", "ur3e", "ur5e", "ur10e", "ur16e")
STOP_CAUSES = ("program_end", "protective_stop", "servo_stop", "connection_closed")


class ConformanceFileError(ValueError):
    """A conformance file that cannot be used; names the key, the value and what is allowed."""


def _check(name: str, value: float, least: float, most: float) -> None:
    if not (math.isfinite(value) and least <= value <= most):
        raise ConformanceFileError(f"{name} is {value}; allowed: {least} to {most}")


@dataclass(frozen=True)
class RobotIdentity:
    """Which robot was measured."""

    name: str
    """What the lab calls it: appears as "measured on <name>"."""
    serial_number: str
    model: str
    """One of `MODEL_NAMES`."""
    software: str
    """As the dashboard's PolyscopeVersion answers, e.g. "URSoftware 3.15.8.106339"."""

    def __post_init__(self) -> None:
        for field in fields(self):
            text = getattr(self, field.name)
            if not text.strip() or len(text) > 200 or not text.isprintable():
                raise ConformanceFileError(
                    f"robot.{field.name} is {text[:40]!r}; it must be 1 to 200 printable characters"
                )
        if self.model not in MODEL_NAMES:
            raise ConformanceFileError(
                f"robot.model is '{self.model}'; known: {', '.join(MODEL_NAMES)}"
            )


SLIDER_RAMP_EASE_S = 0.3
"""The servoJ ramp of a slider point, streamed at full speed whatever the slider says: it speeds up
for this time, by half a cosine."""
SLIDER_RAMP_WINDOW_S = (0.6, 1.05)
"""Its speed is the median of the measured joint speed in this window from its start on; it goes on
for longer. The look-ahead time is that of the tracking measurement."""


@dataclass(frozen=True)
class SliderPoint:
    """How fast the arm moves with the speed slider at one setting.

    Each ratio is the measured speed divided by the speed of the same motion at slider 1: for
    `servo_speed_ratio` the servoJ ramp below, for `move_speed_ratio` the cruise of a moveJ.
    """

    slider_fraction: float
    servo_speed_ratio: float
    move_speed_ratio: float
    target_speed_fraction: float
    """RTDE output during the motion."""
    speed_scaling: float
    """RTDE output during the motion."""

    def __post_init__(self) -> None:
        for field in fields(self):
            # A ratio slightly above 1 is measurement noise.
            _check(f"slider.{field.name}", getattr(self, field.name), 0.0, 1.2)


@dataclass(frozen=True)
class StopMeasurement:
    """One stop from a constant speed: largest joint speed, its travel, and the time to rest."""

    cause: str
    """One of `STOP_CAUSES`: the dashboard's "stop"; triggerProtectiveStop; servoStop; the streaming
    client killed, so that the watchdog (5 Hz) ends the program."""
    joint: int
    """Index 0 to 5 of the joint that moved."""
    joint_speed_rad_s: float
    """Measured speed when the stop was requested."""
    joint_travel_rad: float
    """Measured travel from the request to standstill."""
    time_s: float
    """From the request to standstill."""

    def __post_init__(self) -> None:
        if self.cause not in STOP_CAUSES:
            raise ConformanceFileError(
                f"stops.cause is '{self.cause}'; known: {', '.join(STOP_CAUSES)}"
            )
        _check("stops.joint", self.joint, 0, 5)
        _check("stops.joint_speed_rad_s", self.joint_speed_rad_s, 1e-3, 10.0)
        _check("stops.joint_travel_rad", self.joint_travel_rad, 1e-6, 6.3)
        _check("stops.time_s", self.time_s, 1e-4, 10.0)


@dataclass(frozen=True)
class GripperTiming:
    """Timing of the Robotiq gripper over its text port."""

    activation_s: float
    """From SET ACT 1 to STA 3."""
    close_s: float
    """From SET POS 255 (speed 255) to OBJ not 0, nothing between the fingers."""
    open_s: float
    """The same for POS 0."""
    echo_delay_s: float
    """From the `ack` of a new POS until PRE shows it."""
    motion_delay_s: float
    """From the `ack` of a new POS until OBJ shows 0 (moving)."""

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(f"gripper.{field.name}", getattr(self, field.name), 0.0, 60.0)


@dataclass(frozen=True)
class TrackingLag:
    """How the arm follows a servoJ sine: the lag of the whole chain and of the joints alone."""

    lookahead_s: float
    """servoJ argument used."""
    servo_gain: float
    """servoJ argument used."""
    frequency_hz: float
    """Of the sine."""
    delay_s: float
    """Commanded to measured joint."""
    amplitude_ratio: float
    """Measured amplitude divided by the commanded one."""
    joint_delay_s: float
    """RTDE `target_q` to `actual_q`."""

    def __post_init__(self) -> None:
        _check("tracking.lookahead_s", self.lookahead_s, 0.03, 0.2)
        _check("tracking.servo_gain", self.servo_gain, 100.0, 2000.0)
        _check("tracking.frequency_hz", self.frequency_hz, 0.05, 10.0)
        _check("tracking.delay_s", self.delay_s, 0.0, 2.0)
        _check("tracking.amplitude_ratio", self.amplitude_ratio, 0.05, 1.2)
        _check("tracking.joint_delay_s", self.joint_delay_s, 0.0, 0.5)


@dataclass(frozen=True)
class ForceReading:
    """RTDE `actual_TCP_force` of an arm at rest that touches nothing, after zeroing nothing."""

    bias_n: tuple[float, float, float]
    noise_n: float
    """Standard deviation of one component, mean over the three."""
    bias_nm: tuple[float, float, float]
    noise_nm: float

    def __post_init__(self) -> None:
        for name in ("bias_n", "bias_nm"):
            for value in getattr(self, name):
                _check(f"force.{name}", value, -500.0, 500.0)
        _check("force.noise_n", self.noise_n, 0.0, 100.0)
        _check("force.noise_nm", self.noise_nm, 0.0, 100.0)


@dataclass(frozen=True)
class RateJitter:
    """Arrival of RTDE packages at the client."""

    rate_hz: float
    spacing_p99_s: float
    """99th percentile of the time between packages."""
    spacing_max_s: float

    def __post_init__(self) -> None:
        _check("jitter.rate_hz", self.rate_hz, 1.0, 1000.0)
        _check("jitter.spacing_p99_s", self.spacing_p99_s, 0.0, 10.0)
        _check("jitter.spacing_max_s", self.spacing_max_s, 0.0, 60.0)


@dataclass(frozen=True)
class ConformanceFile:
    """Everything that was measured on one robot."""

    robot: RobotIdentity
    measured_at: str = ""
    """ISO 8601 date and time."""
    slider: tuple[SliderPoint, ...] = ()
    stops: tuple[StopMeasurement, ...] = ()
    gripper: GripperTiming | None = None
    tracking: TrackingLag | None = None
    force: ForceReading | None = None
    jitter: RateJitter | None = None
    script_start_s: float | None = None
    """From the last byte of the uploaded script until runtime_state is 2."""
    unlock_delay_s: float | None = None
    """Shortest time after a protective stop at which the dashboard unlocked it."""
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        if self.format_version != FORMAT_VERSION:
            raise ConformanceFileError(
                f"format_version is {self.format_version}; this version reads {FORMAT_VERSION}"
            )
        if len(self.slider) > 100 or len(self.stops) > 1000:
            raise ConformanceFileError("more than 100 slider points or 1000 stops")
        for name in ("script_start_s", "unlock_delay_s"):
            value = getattr(self, name)
            if value is not None:
                _check(name, value, 0.0, 60.0)

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(asdict(self), indent=2, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> ConformanceFile:
        """Read the text of a file.

        Raises:
            ConformanceFileError: not JSON, unknown or missing keys, wrong types, out of range.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            reason = str(error) or type(error).__name__
            raise ConformanceFileError(f"not JSON: {reason[:200]}") from error
        made: ConformanceFile = _build(cls, data, "file")
        return made

    def save(self, path: Path) -> None:
        """Write the file."""
        path.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> ConformanceFile:
        """Read a file.

        Raises:
            ConformanceFileError: missing, too large, not UTF-8, or what `from_json` refuses.
        """
        try:
            if path.stat().st_size > MAX_BYTES:
                raise ConformanceFileError(f"larger than {MAX_BYTES} bytes")
            return cls.from_json(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConformanceFileError(f"{path}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise ConformanceFileError(f"{path}: not UTF-8 text at byte {error.start}") from error
        except ConformanceFileError as error:
            raise ConformanceFileError(
                f"{path}: {error}; measure again with equi-conformance, or correct the file"
            ) from error


def _build(kind: Any, data: Any, where: str) -> Any:
    """A value of type `kind` from plain JSON data; strict about keys and types."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        inner = next(item for item in get_args(kind) if item is not type(None))
        return None if data is None else _build(inner, data, where)
    if origin is tuple:
        return _build_tuple(get_args(kind), data, where)
    if is_dataclass(kind):
        return _build_dataclass(kind, data, where)
    if kind is float:
        # Also bounds integers of thousands of digits, which float() cannot take.
        if isinstance(data, bool) or not isinstance(data, (int, float)) or abs(data) > 1e12:
            raise ConformanceFileError(f"{where} must be a number up to 1e12")
        return float(data)
    if kind is int and (isinstance(data, bool) or not isinstance(data, int) or abs(data) > 10**9):
        raise ConformanceFileError(f"{where} must be an integer up to 1e9")
    if not isinstance(data, kind):
        raise ConformanceFileError(f"{where} is {_short(data)}; it must be a {kind.__name__}")
    return data


def _build_tuple(kinds: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise ConformanceFileError(f"{where} is {_short(data)}; it must be a list")
    if kinds[-1] is not Ellipsis and len(data) != len(kinds):
        raise ConformanceFileError(f"{where} has {len(data)} numbers; it must have {len(kinds)}")
    return tuple(_build(kinds[0], item, f"{where}[{index}]") for index, item in enumerate(data))


def _build_dataclass(kind: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise ConformanceFileError(f"{where} is {_short(data)}; it must be a JSON object")
    hints = typing.get_type_hints(kind)
    unknown = sorted(set(data) - set(hints))
    if unknown:
        raise ConformanceFileError(
            f"{where} has the unknown key {_short(unknown[0])}; known: {', '.join(hints)}"
        )
    values = {name: _build(hints[name], data[name], f"{where}.{name}") for name in data}
    try:
        return kind(**values)
    except TypeError as error:
        raise ConformanceFileError(f"{where}: {error}") from error


def _short(data: Any) -> str:
    return repr(data)[:40] if isinstance(data, (str, int, float, bool)) else type(data).__name__
