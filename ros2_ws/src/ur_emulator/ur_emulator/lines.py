# SPDX-License-Identifier: MIT
"""Lines of text from a stream of bytes, none of them endless."""

from __future__ import annotations

MAX_LINE_BYTES = 65_536


class LineTooLongError(ValueError):
    """A peer that sends bytes without ever ending its line; the connection is closed."""


class LineReader:
    """Collects bytes and yields complete lines, without their newline."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Lines completed by these bytes.

        Raises:
            LineTooLongError: the line that has begun is longer than any that has a meaning.
        """
        self._rest += data
        *lines, rest = self._rest.split(b"\n")
        if max(map(len, (*lines, rest))) > self._max_bytes:
            raise LineTooLongError(f"line of more than {self._max_bytes} bytes")
        self._rest = rest
        return [bytes(line) for line in lines]
