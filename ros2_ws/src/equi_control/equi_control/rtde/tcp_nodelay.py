# SPDX-License-Identifier: MIT
"""Switches off Nagle's algorithm on connections that a library has opened in this process.

ur_rtde leaves it on. A pose is then held back until the controller's next package acknowledges the
pose before it: it arrives a cycle late, and after a hiccup of either side two arrive at once, of
which the controller reads the second only. The library gives no access to its sockets, but they
are files of this process.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

_OWN_FILES = Path("/proc/self/fd")


def set_tcp_nodelay(host: str, port: int) -> int:
    """Set TCP_NODELAY on every connection of this process to that port; returns how many."""
    address = socket.gethostbyname(host)
    found = 0
    for entry in os.listdir(_OWN_FILES):
        try:
            if not stat.S_ISSOCK(os.fstat(int(entry)).st_mode):
                continue
            # A duplicate: closing it leaves the library's own descriptor open.
            with socket.socket(fileno=os.dup(int(entry))) as connection:
                if connection.getpeername() != (address, port):
                    continue
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                found += 1
        except OSError:
            continue  # closed meanwhile, not connected, or of another family
    return found
