# SPDX-License-Identifier: MIT
"""What the servo process logs, brought to its parent: a spawned child has no log handler.

Whole records through a pair of sockets. The sender never waits: a driver that does not listen must
not hold the servo loop up. What it cannot hand over goes to stderr.
"""

from __future__ import annotations

import json
import logging
import socket
import sys

_LONGEST = 4000
"""Characters of a text; a traceback may be longer and is cut at its beginning."""
_RECORDS_AT_ONCE = 50
_PACKET_BYTES = 65536


class LogSender(logging.Handler):
    """The child's end: a handler for its root logger."""

    def __init__(self, channel: socket.socket) -> None:
        super().__init__(logging.INFO)
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record, or write it to stderr; never waits for the parent."""
        try:
            text = self.format(record)[-_LONGEST:]
            packet = json.dumps([record.name, record.levelno, text]).encode()
            try:
                self._channel.send(packet, socket.MSG_DONTWAIT)
            except OSError:  # the parent is gone, or has not listened for long
                sys.stderr.write(f"{text}\n")
        except Exception:
            self.handleError(record)

    def install(self) -> None:
        """Send what this process logs from now on."""
        root = logging.getLogger()
        root.addHandler(self)
        root.setLevel(logging.INFO)


class LogReceiver:
    """The parent's end: logs under the same names what the child has logged."""

    def __init__(self) -> None:
        self._channel, self.child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def child_started(self) -> None:
        """Only the child holds its end from now on."""
        self.child_end.close()

    def relay(self) -> None:
        """Log what has arrived; never waits."""
        for _ in range(_RECORDS_AT_ONCE):
            try:
                packet = self._channel.recv(_PACKET_BYTES, socket.MSG_DONTWAIT)
            except OSError:
                return  # nothing there
            if not packet:
                self._channel.close()  # the child is gone, and everything it said was heard
                return
            try:
                name, level, text = json.loads(packet)
            except ValueError:
                continue
            logging.getLogger(name).log(level, "%s", text)
