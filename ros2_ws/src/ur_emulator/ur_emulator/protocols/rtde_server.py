# SPDX-License-Identifier: MIT
"""RTDE (30004): sessions over the controller's variables and registers."""

from __future__ import annotations

import logging
import struct
import time
from typing import Any

from ur_emulator.controller.controller import Controller
from ur_emulator.protocols import rtde_wire as wire
from ur_emulator.protocols.connections import Connection

_LOG = logging.getLogger(__name__)
# Recipe numbers are one byte, and 0 means refused.
_MAX_RECIPES = 255


class RtdeSession:
    """One RTDE client: its recipes, and whether it wants data."""

    def __init__(self, connection: Connection, controller: Controller) -> None:
        self._connection = connection
        self._controller = controller
        self._buffer = bytearray()
        self._inputs: dict[int, wire.InputRecipe] = {}
        self._output: wire.OutputRecipe | None = None
        self._every = 1
        self._started = False
        self._ticks = 0

    def received(self, data: bytes) -> None:
        """Answer every complete request."""
        self._buffer += data
        try:
            for package in wire.take_packages(self._buffer):
                self._handle(package)
        except (wire.WireError, struct.error) as error:
            _LOG.warning("rtde: %s; connection closed", error)
            self._connection.close()

    def closed(self) -> None:
        """Release the registers, so that the next client can claim them."""
        self._controller.registers.release(self)

    def publish(self, values: dict[str, Any]) -> None:
        """Send this cycle's data if it is due."""
        if not self._started or self._output is None:
            return
        self._ticks += 1
        if self._ticks % self._every == 0:
            self._connection.send(self._output.encode(values), droppable=True)

    def send_text(self, message: str) -> None:
        """Send a controller message (an error, level 1) to the client."""
        text, source = message.encode()[:200], b"emulator"
        payload = bytes([len(text)]) + text + bytes([len(source)]) + source + bytes([1])
        self._connection.send(wire.encode_package(wire.TEXT_MESSAGE, payload))

    def _handle(self, package: wire.Package) -> None:
        if package.kind == wire.DATA:
            self._take_data(package.payload)
        elif package.kind == wire.PROTOCOL_VERSION:
            self._reply(package.kind, bytes([int(package.payload == struct.pack(">H", 2))]))
        elif package.kind == wire.CONTROLLER_VERSION:
            self._reply(package.kind, struct.pack(">4I", *self._controller.model.version))
        elif package.kind == wire.SETUP_OUTPUTS:
            self._set_up_outputs(package.payload)
        elif package.kind == wire.SETUP_INPUTS:
            self._set_up_inputs(package.payload)
        elif package.kind == wire.START:
            self._started = self._output is not None
            self._reply(package.kind, bytes([int(self._started)]))
        elif package.kind == wire.PAUSE:
            self._started = False
            self._reply(package.kind, b"\x01")
        else:
            _LOG.warning("rtde: request of unknown kind %d", package.kind)

    def _reply(self, kind: int, payload: bytes) -> None:
        self._connection.send(wire.encode_package(kind, payload))

    def _set_up_outputs(self, payload: bytes) -> None:
        rate_hz = self._controller.model.rate_hz
        (frequency_hz,) = struct.unpack_from(">d", payload)
        names = wire.split_names(payload[8:])
        types = [wire.OUTPUT_TYPES.get(name, "NOT_FOUND") for name in names]
        if "NOT_FOUND" not in types:
            self._output = wire.OutputRecipe(1, names)
            wanted_hz = min(max(frequency_hz, 1.0), rate_hz) if frequency_hz > 0 else rate_hz
            self._every = round(rate_hz / wanted_hz)
        self._reply(wire.SETUP_OUTPUTS, b"\x01" + ",".join(types).encode())

    def _set_up_inputs(self, payload: bytes) -> None:
        names = wire.split_names(payload)
        types = [wire.INPUT_TYPES.get(name, "NOT_FOUND") for name in names]
        known = [name for name, kind in zip(names, types, strict=True) if kind != "NOT_FOUND"]
        taken = set(self._controller.registers.claim(known, self))
        types = ["IN_USE" if n in taken else t for n, t in zip(names, types, strict=True)]
        recipe_id = 0
        if not taken and len(known) == len(names) and len(self._inputs) < _MAX_RECIPES:
            recipe_id = len(self._inputs) + 1
            self._inputs[recipe_id] = wire.InputRecipe(names)
        self._reply(wire.SETUP_INPUTS, bytes([recipe_id]) + ",".join(types).encode())

    def _take_data(self, payload: bytes) -> None:
        recipe = self._inputs.get(payload[0]) if payload else None
        if recipe is None:
            return  # a reconnecting client writes before it has set up its recipes
        try:
            values = recipe.decode(payload[1:])
        except wire.WireError as error:
            # The client library has two calls with a wrong length; the controller drops them.
            _LOG.debug("rtde: %s", error)
            return
        self._controller.registers.write(values, time.monotonic())
