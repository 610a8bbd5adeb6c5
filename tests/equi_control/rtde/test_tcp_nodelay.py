# SPDX-License-Identifier: MIT
"""Connections that a library has opened send at once; others are left alone."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from equi_control.rtde.tcp_nodelay import set_tcp_nodelay


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def holds_back(connection: socket.socket) -> bool:
    return not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_only_connections_to_that_port_are_changed_and_stay_open(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with (
        socket.create_server(("127.0.0.1", 0)) as other_listener,
        socket.create_connection(("127.0.0.1", port)) as first,
        socket.create_connection(("127.0.0.1", port)) as second,
        socket.create_connection(other_listener.getsockname()) as foreign,
    ):
        assert set_tcp_nodelay("localhost", port) == 2

        assert not holds_back(first)
        assert not holds_back(second)
        assert holds_back(foreign)
        accepted, _ = listener.accept()
        first.sendall(b"still here")
        assert accepted.recv(20) == b"still here"
        accepted.close()


def test_none_is_found_where_nothing_is_connected(listener: socket.socket) -> None:
    assert set_tcp_nodelay("127.0.0.1", listener.getsockname()[1]) == 0
