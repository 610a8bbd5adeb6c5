# SPDX-License-Identifier: MIT
"""RTDE version 2 on the wire: package framing, variable types, packing and unpacking."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ur_emulator.constants import REGISTER_COUNT

PROTOCOL_VERSION = ord("V")
CONTROLLER_VERSION = ord("v")
SETUP_OUTPUTS = ord("O")
SETUP_INPUTS = ord("I")
START = ord("S")
PAUSE = ord("P")
DATA = ord("U")
TEXT_MESSAGE = ord("M")

_HEADER = struct.Struct(">HB")
MAX_PAYLOAD_BYTES = 0xFFFF - _HEADER.size
_STRUCT_OF_TYPE = {
    "DOUBLE": "d",
    "INT32": "i",
    "UINT32": "I",
    "UINT64": "Q",
    "UINT8": "B",
    "BOOL": "?",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
    "VECTOR6UINT32": "6I",
}

_VECTOR6D = """
    target_q target_qd target_qdd target_current target_moment actual_q actual_qd actual_qdd
    actual_current actual_moment joint_control_output actual_TCP_pose actual_TCP_speed
    actual_TCP_force target_TCP_pose target_TCP_speed joint_temperatures actual_joint_voltage
    payload_inertia ft_raw_wrench
""".split()  # noqa: SIM905 - a list of thirty quoted names is harder to read
_DOUBLE = """
    timestamp actual_execution_time speed_scaling target_speed_fraction actual_momentum
    actual_main_voltage actual_robot_voltage actual_robot_current standard_analog_input0
    standard_analog_input1 standard_analog_output0 standard_analog_output1 payload
""".split()  # noqa: SIM905
_UINT32 = """
    runtime_state robot_status_bits safety_status_bits output_bit_registers0_to_31
    output_bit_registers32_to_63
""".split()  # noqa: SIM905

OUTPUT_TYPES: dict[str, str] = {
    **dict.fromkeys(_VECTOR6D, "VECTOR6D"),
    **dict.fromkeys(_DOUBLE, "DOUBLE"),
    **dict.fromkeys(_UINT32, "UINT32"),
    "actual_tool_accelerometer": "VECTOR3D",
    "payload_cog": "VECTOR3D",
    "joint_mode": "VECTOR6INT32",
    "robot_mode": "INT32",
    "safety_mode": "INT32",
    "actual_digital_input_bits": "UINT64",
    "actual_digital_output_bits": "UINT64",
    **{f"output_int_register_{i}": "INT32" for i in range(REGISTER_COUNT)},
    **{f"output_double_register_{i}": "DOUBLE" for i in range(REGISTER_COUNT)},
}

INPUT_TYPES: dict[str, str] = {
    "standard_digital_output_mask": "UINT8",
    "standard_digital_output": "UINT8",
    "configurable_digital_output_mask": "UINT8",
    "configurable_digital_output": "UINT8",
    "tool_digital_output_mask": "UINT8",
    "tool_digital_output": "UINT8",
    "speed_slider_mask": "UINT32",
    "speed_slider_fraction": "DOUBLE",
    "standard_analog_output_mask": "UINT8",
    "standard_analog_output_type": "UINT8",
    "standard_analog_output_0": "DOUBLE",
    "standard_analog_output_1": "DOUBLE",
    "external_force_torque": "VECTOR6D",
    **{f"input_int_register_{i}": "INT32" for i in range(REGISTER_COUNT)},
    **{f"input_double_register_{i}": "DOUBLE" for i in range(REGISTER_COUNT)},
}


class WireError(ValueError):
    """Bytes that are no RTDE package; names what was found."""


@dataclass(frozen=True)
class Package:
    """One RTDE package without its header."""

    kind: int
    payload: bytes


def encode_package(kind: int, payload: bytes = b"") -> bytes:
    """A package with its header, ready to send."""
    return _HEADER.pack(_HEADER.size + len(payload), kind) + payload


def take_packages(buffer: bytearray) -> Iterator[Package]:
    """Remove and yield every complete package from the front of `buffer`."""
    while len(buffer) >= _HEADER.size:
        length, kind = _HEADER.unpack_from(buffer)
        if length < _HEADER.size:
            raise WireError(f"package of length {length}; the header alone has {_HEADER.size}")
        if len(buffer) < length:
            return
        payload = bytes(buffer[_HEADER.size : length])
        del buffer[:length]
        yield Package(kind, payload)


def split_names(text: bytes) -> list[str]:
    """Variable names of a recipe request, with or without a trailing comma."""
    return [name for name in text.decode("ascii", "replace").split(",") if name]


class OutputRecipe:
    """Packs a chosen set of output variables into data packages."""

    def __init__(self, recipe_id: int, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._id = recipe_id
        self._struct = struct.Struct(
            ">B" + "".join(_STRUCT_OF_TYPE[OUTPUT_TYPES[name]] for name in names)
        )
        if self._struct.size > MAX_PAYLOAD_BYTES:
            raise WireError(
                f"recipe of {self._struct.size} bytes; a package holds {MAX_PAYLOAD_BYTES}"
            )

    def encode(self, values: Mapping[str, Sequence[float] | float]) -> bytes:
        """The data package for this cycle; vectors as sequences, scalars as numbers."""
        flat: list[float] = []
        for name in self.names:
            value = values[name]
            if isinstance(value, (int, float)):
                flat.append(value)
            else:
                flat.extend(value)
        return encode_package(DATA, self._struct.pack(self._id, *flat))


class InputRecipe:
    """Unpacks data packages that a client writes into inputs."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._struct = struct.Struct(
            ">" + "".join(_STRUCT_OF_TYPE[INPUT_TYPES[name]] for name in names)
        )

    def decode(self, payload: bytes) -> dict[str, float]:
        """Values by name (vectors are dropped: none of them drives anything here).

        Raises:
            WireError: the payload is shorter or longer than the recipe.
        """
        if len(payload) != self._struct.size:
            raise WireError(
                f"data of {len(payload)} bytes for a recipe of {self._struct.size} "
                f"({', '.join(self.names)})"
            )
        flat = iter(self._struct.unpack(payload))
        values: dict[str, float] = {}
        for name in self.names:
            if INPUT_TYPES[name] == "VECTOR6D":
                for _ in range(6):
                    next(flat)
            else:
                values[name] = next(flat)
        return values
