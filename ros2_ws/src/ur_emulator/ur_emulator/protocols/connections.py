# SPDX-License-Identifier: MIT
"""TCP endpoints of the emulator in one select loop, with faults on each service.

Everything is non-blocking: a client that does not read, a port that is frozen, or a peer that
vanishes never delays the controller's cycle.
"""

from __future__ import annotations

import logging
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ur_emulator.constants import Service

_LOG = logging.getLogger(__name__)
# A reader this far behind gets no more samples until it catches up.
_BACKLOG_LIMIT_BYTES = 65536


class Session(Protocol):
    """What a service does with one connection."""

    def received(self, data: bytes) -> None:
        """Handle bytes from the client."""

    def closed(self) -> None:
        """The connection is closed; release what it held."""


@dataclass(frozen=True)
class LinkFault:
    """What goes wrong on a service's connections."""

    frozen: bool = False
    """Nothing is read, written or accepted; sockets stay open."""
    delay_s: float = 0.0
    """Both directions arrive late by this much."""
    drop_fraction: float = 0.0
    """This share of messages is lost: to the client, and on the text ports also from it. A pose on
    its way to the controller is not lost: TCP delivers it, late at worst (see `delay_s`)."""
    refuse: bool = False
    """New connections are closed at once."""


class Connection:
    """One client on one service."""

    def __init__(self, sock: socket.socket, service: Service, network: Network) -> None:
        self.service = service
        self.peer = sock.getpeername()
        self.session: Session | None = None
        self._sock = sock
        self._network = network
        self._backlog = bytearray()
        self._outgoing: deque[tuple[float, bytes]] = deque()
        self._incoming: deque[tuple[float, bytes]] = deque()
        self.is_open = True

    def fileno(self) -> int:
        """Socket descriptor, for the selector."""
        return self._sock.fileno()

    def send(self, data: bytes, *, droppable: bool = False) -> None:
        """Queue bytes; a droppable sample is skipped when the reader is far behind."""
        fault = self._network.fault(self.service)
        if not self.is_open or self._network.loses(self.service):
            return
        if droppable and (fault.frozen or len(self._backlog) > _BACKLOG_LIMIT_BYTES):
            return
        self._outgoing.append((time.monotonic() + fault.delay_s, data))
        self.pump()

    def pump(self) -> None:
        """Move what is due: queued bytes to the socket, delayed input to the session."""
        if self._network.fault(self.service).frozen or not self.is_open:
            return
        now = time.monotonic()
        while self._outgoing and self._outgoing[0][0] <= now:
            self._backlog += self._outgoing.popleft()[1]
        if self._backlog:
            try:
                sent = self._sock.send(self._backlog)
                del self._backlog[:sent]
            except BlockingIOError:
                pass
            except OSError:
                self.close()
                return
        # What a client sent before it lost its connection is not read any more.
        while self.is_open and self._incoming and self._incoming[0][0] <= now:
            self._deliver(self._incoming.popleft()[1])

    def _deliver(self, data: bytes) -> None:
        try:
            if self.session is not None:
                self.session.received(data)
        except Exception as error:
            # Whatever a client sends, the controller goes on: it loses the client, not its cycle.
            level = logging.WARNING if isinstance(error, ValueError) else logging.ERROR
            _LOG.log(level, "%s: %s; connection closed", self.service.value, error, exc_info=True)
            self.close()

    def read(self) -> None:
        """Take what the client sent; called when the socket is readable."""
        fault = self._network.fault(self.service)
        if fault.frozen:
            return
        try:
            data = self._sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
        elif self.service is Service.RTDE or not self._network.loses(self.service):
            self._incoming.append((time.monotonic() + fault.delay_s, data))
            self.pump()

    def close(self, *, abort: bool = False) -> None:
        """Close the connection; `abort` resets it, as a pulled cable followed by a reboot does."""
        if not self.is_open:
            return
        self.is_open = False
        self._network.forget(self)
        if abort:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._sock.close()
        if self.session is not None:
            self.session.closed()


SessionFactory = Callable[[Connection], Session]


class Network:
    """All listening ports and connections of one emulated robot."""

    def __init__(self, address: str, seed: int = 0) -> None:
        if not address.startswith("127."):
            raise ValueError(
                f"address is '{address}'; the emulator binds loopback addresses only (127.x.x.x)"
            )
        self._address = address
        self._selector = selectors.DefaultSelector()
        self._endpoints: list[tuple[Service, int, SessionFactory]] = []
        self._listeners: list[socket.socket] = []
        self._connections: list[Connection] = []
        self._faults = {service: LinkFault() for service in Service}
        self._rng = np.random.default_rng(seed)

    def serve(self, service: Service, port: int, factory: SessionFactory) -> None:
        """Declare an endpoint; `open` starts to listen."""
        self._endpoints.append((service, port, factory))

    def open(self, *, but: Service | None = None) -> None:
        """Listen on the declared endpoints (of all services but one)."""
        for service, port, factory in self._endpoints:
            if service is but:
                continue
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((self._address, port))
            except OSError as error:
                listener.close()
                raise OSError(
                    f"cannot listen on {self._address}:{port} for {service.value} "
                    f"({error.strerror}); end what listens there, or use another address"
                ) from error
            listener.listen(8)
            listener.setblocking(False)
            self._listeners.append(listener)
            self._selector.register(listener, selectors.EVENT_READ, (service, factory))

    def shut(self, *, keep: Service | None = None) -> None:
        """Stop listening and abort every connection, except those of one service."""
        for listener in list(self._listeners):
            if self._selector.get_key(listener).data[0] is keep:
                continue
            self._selector.unregister(listener)
            self._listeners.remove(listener)
            listener.close()
        for connection in list(self._connections):
            if connection.service is not keep:
                connection.close(abort=True)

    def poll(self, timeout_s: float) -> None:
        """Serve sockets for at most `timeout_s`."""
        for key, _ in self._selector.select(max(timeout_s, 0.0)):
            if isinstance(key.data, tuple):
                self._accept(key.fileobj, *key.data)  # type: ignore[arg-type]
            else:
                key.data.read()

    def pump(self) -> None:
        """Move delayed and queued data; called once per cycle."""
        for connection in list(self._connections):
            connection.pump()

    def sessions(self, service: Service) -> list[Session]:
        """Sessions of the open connections of a service."""
        return [
            connection.session
            for connection in self._connections
            if connection.service is service and connection.session is not None
        ]

    def fault(self, service: Service) -> LinkFault:
        """The fault now injected into a service."""
        return self._faults[service]

    def inject(self, service: Service, **changes: float | bool) -> None:
        """Change the fault of a service: frozen, delay_s, drop_fraction, refuse."""
        self._faults[service] = replace(self._faults[service], **changes)  # type: ignore[arg-type]
        # A frozen socket would stay readable: do not select on it.
        for connection in self._connections:
            if connection.service is service:
                self._watch(connection)

    def cut(self, service: Service) -> int:
        """Abort every connection of a service; returns how many."""
        victims = [c for c in self._connections if c.service is service]
        for connection in victims:
            connection.close(abort=True)
        return len(victims)

    def loses(self, service: Service) -> bool:
        """Whether the next message on a service is lost (random, by its drop fraction)."""
        fraction = self._faults[service].drop_fraction
        return fraction > 0 and float(self._rng.random()) < fraction

    def forget(self, connection: Connection) -> None:
        """Remove a closing connection."""
        if connection in self._connections:
            self._connections.remove(connection)
            self._watch(connection)

    def close(self) -> None:
        """Close everything."""
        self.shut()
        self._selector.close()

    def _accept(self, listener: socket.socket, service: Service, factory: SessionFactory) -> None:
        fault = self._faults[service]
        if fault.frozen:
            return
        try:
            sock, peer = listener.accept()
        except OSError:
            return
        if fault.refuse:
            sock.close()
            return
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(sock, service, self)
        except OSError:  # reset by the client before it was accepted: it has no peer any more
            sock.close()
            return
        _LOG.debug("%s: connection from %s", service.value, peer)
        self._connections.append(connection)
        self._watch(connection)
        connection.session = factory(connection)

    def _watch(self, connection: Connection) -> None:
        wanted = (
            connection.is_open
            and connection in self._connections
            and not self._faults[connection.service].frozen
        )
        watched = connection.fileno() in self._selector.get_map()
        if wanted and not watched:
            self._selector.register(connection.fileno(), selectors.EVENT_READ, connection)
        elif watched and not wanted:
            self._selector.unregister(connection.fileno())
