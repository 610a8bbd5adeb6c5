# SPDX-License-Identifier: MIT
"""Command line of the console, and the one address that it prints."""

from __future__ import annotations

import argparse
import datetime
import errno
import ipaddress
import secrets
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from equi_core.scene_seeds import TEST_SEED

_LAST_PORT = 65535
_NO_HOST = (
    "no address of this computer is called so; choose --host (console_host:=) among those that "
    "'ip address' shows, or 0.0.0.0 for all of them"
)
_WHY = {
    errno.EADDRINUSE: "the port is taken; another console may run there already: open it, or "
    "choose --port (console_port:=)",
    errno.EACCES: "ports below 1024 are the system's; choose another --port (console_port:=)",
    errno.EADDRNOTAVAIL: _NO_HOST,
    socket.EAI_NONAME: _NO_HOST,
    socket.EAI_AGAIN: _NO_HOST,
}
"""What to say of an error of the operating system."""


class ServerError(RuntimeError):
    """The console cannot be served; says why, in one sentence."""


@dataclass(frozen=True)
class ServerOptions:
    """Where the console is served, and which cell it shows."""

    host: str
    port: int
    token: str
    """What a browser must bring; empty on loopback."""
    task: str
    cell: str
    model: str
    simulated: bool
    episodes: int
    seed: int
    record: bool
    output: Path
    side_views: tuple[str, ...]

    @property
    def address(self) -> str:
        """What to open in a browser."""
        query = f"/?token={self.token}" if self.token else "/"
        # Served at every address of this computer: the browser needs one that leads here.
        host = socket.gethostname() if self.host in ("0.0.0.0", "") else self.host
        return f"http://{host}:{self.port}{query}"


def parse(arguments: Sequence[str]) -> ServerOptions:
    """Read the arguments. A host that others can reach gets a token."""
    parser = argparse.ArgumentParser(
        prog="console",
        description="The operator's console in the browser. It is no emergency stop.",
        epilog="Example: ros2 run equi_console console --task block_picking",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to serve at; another than loopback asks for a token. Default: %(default)s",
    )
    parser.add_argument("--port", type=int, default=8477, help="default: %(default)s")
    parser.add_argument("--task", default="block_picking")
    parser.add_argument("--cell", default="sim")
    parser.add_argument("--model", default="", help="policy folder")
    parser.add_argument("--simulated", action="store_true", help="a referee gives the labels")
    parser.add_argument("--episodes", type=int, default=50, help="of the protocol")
    parser.add_argument("--seed", type=int, default=TEST_SEED, help="of the first scene")
    parser.add_argument("--no-record", dest="record", action="store_false", help="no bags")
    parser.add_argument("--output", type=Path, default=None, help="results; give it to resume")
    parser.add_argument(
        "--side-views", nargs="*", default=["cam_left/color/image_raw", "cam_right/color/image_raw"]
    )
    parsed = parser.parse_args(arguments)
    if parsed.output is None:
        stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        parsed.output = Path("runs") / "console" / f"{parsed.task}-{stamp}"
    parsed.side_views = tuple(parsed.side_views)
    token = "" if is_loopback(parsed.host) else secrets.token_urlsafe(16)
    return ServerOptions(token=token, **vars(parsed))


def is_loopback(host: str) -> bool:
    """Whether only this computer can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def require_free(options: ServerOptions) -> None:
    """Find out before anything starts whether the port can be had.

    Raises:
        ServerError: it is taken or no port, or the host is not of this computer.
    """
    if not 1 <= options.port <= _LAST_PORT:
        raise ServerError(
            f"--port (console_port:=) is {options.port}; a port is a number from 1 to {_LAST_PORT}"
        )
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((options.host, options.port))
        except OSError as error:
            raise ServerError(
                f"the console cannot be served at {options.host}:{options.port}: "
                + _WHY.get(error.errno or 0, f"{error}; choose another --port (console_port:=)")
            ) from error
