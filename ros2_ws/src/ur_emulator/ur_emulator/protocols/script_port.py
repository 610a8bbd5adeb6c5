# SPDX-License-Identifier: MIT
"""Script ports (30001 to 30003): program texts in; nothing is sent back."""

from __future__ import annotations

from ur_emulator.controller.controller import Controller
from ur_emulator.controller.script_text import UploadReader
from ur_emulator.protocols.connections import Connection


class ScriptSession:
    """One client that uploads programs."""

    def __init__(self, connection: Connection, controller: Controller) -> None:
        del connection
        self._controller = controller
        self._reader = UploadReader()

    def received(self, data: bytes) -> None:
        """Pass on every complete program."""
        for upload in self._reader.feed(data):
            self._controller.upload(upload)

    def closed(self) -> None:
        """A half-sent program is forgotten with the session."""
