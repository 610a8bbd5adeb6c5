# SPDX-License-Identifier: MIT
"""The controller's dashboard (port 29999): one line of text in, one line out, each with a limit.

Usable in any state of the robot, and without ur_rtde: also while its program is paused or gone.
"""

from __future__ import annotations

import socket
import time

PORT = 29999
_NOT_UNDERSTOOD = ("could not understand", "unknown command")


class DashboardError(RuntimeError):
    """The dashboard cannot be reached or does not answer; says what was asked."""


class Dashboard:
    """One connection to one controller's dashboard; a context manager."""

    def __init__(self, host: str, port: int = PORT, timeout_s: float = 2.0) -> None:
        self._address, self._timeout_s = (host, port), timeout_s
        self._socket: socket.socket | None = None
        self._rest = b""

    def __enter__(self) -> Dashboard:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        """Connect and take the greeting.

        Raises:
            DashboardError: nobody answers there.
        """
        self.close()
        try:
            self._socket = socket.create_connection(self._address, self._timeout_s)
        except OSError as error:
            raise DashboardError(
                f"no dashboard at {self._address[0]}:{self._address[1]} ({error}); is the address "
                "right and the controller on?"
            ) from error
        self._line("the greeting")

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
        self._socket, self._rest = None, b""

    def ask(self, command: str) -> str:
        """Send one command; returns the answer without its line end.

        Raises:
            DashboardError: not connected, or no answer in time.
        """
        if self._socket is None:
            raise DashboardError("not connected to the dashboard; call connect first")
        try:
            self._socket.sendall(command.encode() + b"\n")
        except OSError as error:
            self.close()
            raise DashboardError(f"the dashboard did not take '{command}' ({error})") from error
        return self._line(f"'{command}'")

    def ask_if_known(self, command: str) -> str | None:
        """As `ask`; None if this controller's software does not know the command."""
        answer = self.ask(command)
        return None if answer.lower().startswith(_NOT_UNDERSTOOD) else answer

    def _line(self, what: str) -> str:
        connection = self._socket
        if connection is None:
            raise DashboardError("not connected to the dashboard; call connect first")
        deadline_s = time.monotonic() + self._timeout_s
        while b"\n" not in self._rest:
            connection.settimeout(max(0.01, deadline_s - time.monotonic()))
            try:
                data = connection.recv(4096)
            except OSError as error:
                self.close()
                raise DashboardError(f"the dashboard did not answer {what} ({error})") from error
            if not data or time.monotonic() > deadline_s:
                self.close()
                raise DashboardError(f"the dashboard closed the connection at {what}")
            self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode("utf-8", "replace").strip()
