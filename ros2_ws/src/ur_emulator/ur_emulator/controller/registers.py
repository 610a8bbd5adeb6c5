# SPDX-License-Identifier: MIT
"""The controller's RTDE registers and other inputs: level state that persists, with owners.

An input that one connection has claimed cannot be claimed by another until the first is closed,
as on the controller; a connection may claim the same input in many of its recipes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from ur_emulator.constants import REGISTER_COUNT

_OUTPUT_INT_NAMES = tuple(f"output_int_register_{i}" for i in range(REGISTER_COUNT))
_OUTPUT_DOUBLE_NAMES = tuple(f"output_double_register_{i}" for i in range(REGISTER_COUNT))


class Registers:
    """Input and output registers with the time of the last write to each integer input."""

    def __init__(self) -> None:
        self.input_ints = [0] * REGISTER_COUNT
        self.input_doubles = [0.0] * REGISTER_COUNT
        self.output_ints = [0] * REGISTER_COUNT
        self.output_doubles = [0.0] * REGISTER_COUNT
        self.input_int_written_s = [0.0] * REGISTER_COUNT
        self.speed_slider = 1.0
        self.digital_outputs = 0
        self._owners: dict[str, object] = {}

    def claim(self, names: Iterable[str], owner: object) -> list[str]:
        """Claim inputs for a connection; returns those that another connection holds."""
        wanted = list(names)
        taken = [name for name in wanted if self._owners.get(name, owner) is not owner]
        if not taken:
            self._owners.update(dict.fromkeys(wanted, owner))
        return taken

    def release(self, owner: object) -> None:
        """Give back everything a closed connection had claimed."""
        self._owners = {name: held for name, held in self._owners.items() if held is not owner}

    def write(self, values: Mapping[str, float], now_s: float) -> None:
        """Apply one data package of inputs."""
        for name, value in values.items():
            if name.startswith("input_int_register_"):
                index = int(name.rsplit("_", 1)[1])
                self.input_ints[index] = int(value)
                self.input_int_written_s[index] = now_s
            elif name.startswith("input_double_register_"):
                self.input_doubles[int(name.rsplit("_", 1)[1])] = float(value)
        fraction = float(values.get("speed_slider_fraction", math.nan))
        if values.get("speed_slider_mask") and math.isfinite(fraction):
            self.speed_slider = min(max(fraction, 0.0), 1.0)
        mask = int(values.get("standard_digital_output_mask", 0))
        if mask:
            wanted = int(values.get("standard_digital_output", 0))
            self.digital_outputs = (self.digital_outputs & ~mask) | (wanted & mask)

    def output_variables(self) -> dict[str, float]:
        """Output registers under their RTDE names."""
        named: dict[str, float] = dict(zip(_OUTPUT_INT_NAMES, self.output_ints, strict=True))
        named.update(zip(_OUTPUT_DOUBLE_NAMES, self.output_doubles, strict=True))
        return named
