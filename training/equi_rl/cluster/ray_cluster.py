# SPDX-License-Identifier: MIT
"""Connecting to a Ray cluster, with an error that can be acted upon when that does not work.

Ray is an extra (`requirements/cluster.txt`), so it is imported only when it is asked for.
"""

from __future__ import annotations

import logging
import os
import socket
from dataclasses import dataclass
from typing import Any

from equi_rl.cluster.worker import ClusterError

_ANSWER_LIMIT_S = 5.0


@dataclass(frozen=True)
class Node:
    """What one machine of the cluster offers."""

    name: str
    cores: float
    memory_mib: float
    gpus: float


def connect(address: str = "auto") -> Any:
    """The module `ray`, connected to the cluster at `address`.

    Args:
        address: `auto` for the cluster that runs on this machine (or RAY_ADDRESS), or host:port of
            its head node.

    Raises:
        ClusterError: Ray is not installed, or nothing answers at the address.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ClusterError(
            "Ray is not installed here; run `make setup CLUSTER=1`, or do without a cluster"
        ) from None
    if ray.is_initialized():
        return ray
    _require_answer(address)
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            configure_logging=False,
            namespace="equi",
        )
    except (ConnectionError, RuntimeError, ValueError, TimeoutError, OSError) as error:
        raise _no_answer(address) from error
    return ray


def nodes(ray: Any) -> list[Node]:
    """The machines that are alive."""
    return [
        Node(
            entry["NodeManagerHostname"] + "/" + entry["NodeID"][:6],
            entry["Resources"].get("CPU", 0.0),
            entry["Resources"].get("memory", 0.0) / 2**20,
            entry["Resources"].get("GPU", 0.0),
        )
        for entry in ray.nodes()
        if entry["Alive"]
    ]


def require_cores(ray: Any, players: int) -> None:
    """Raise ClusterError if so many players, one core each, can never run at a time."""
    cores = sum(node.cores for node in nodes(ray))
    if players > cores:
        raise ClusterError(
            f"{players} players need {players} cores; the Ray cluster has {cores:.0f}; nothing was"
            " started. Ask for fewer with --players, or add a machine"
        )


def _require_answer(address: str) -> None:
    """Ask the port itself: Ray would wait for minutes."""
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS", "auto")
    if address in ("auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_ANSWER_LIMIT_S):
            pass
    except ValueError:
        raise ClusterError(f"address is '{address}'; it must be 'auto' or host:port") from None
    except OSError:
        raise _no_answer(address) from None


def _no_answer(address: str) -> ClusterError:
    where = "on this machine" if address == "auto" else f"at {address}"
    return ClusterError(
        f"no Ray cluster answers {where}; start one with `ray start --head` (and on further"
        " machines `ray start --address=HEAD:6379`), or do without it on this machine"
    )
