# SPDX-License-Identifier: MIT
"""Listens to the clouds of a cell for some seconds; only their stamps are kept."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from functools import partial

from sensor_msgs.msg import PointCloud2

from equi_control.doctor.cameras import Arrival
from equi_ros import qos
from equi_ros.background_node import BackgroundNode

_POLL_S = 0.02


def listen(
    topics: Mapping[str, str], duration_s: float, namespace: str = "", settle_s: float = 5.0
) -> dict[str, list[Arrival]]:
    """When clouds were taken and arrived, by camera.

    Args:
        topics: cloud topic of each camera.
        duration_s: how long to listen after every camera was heard [s].
        namespace: of the cell.
        settle_s: how long to wait for the first cloud of every camera [s].
    """
    heard: dict[str, list[Arrival]] = {name: [] for name in topics}

    def take(camera: str, data: bytes) -> None:
        arrived_s = time.time()
        order = "<" if data[1] == 1 else ">"
        seconds, nanoseconds = struct.unpack_from(f"{order}iI", data, 4)
        heard[camera].append(Arrival(seconds + nanoseconds * 1e-9, arrived_s))

    with BackgroundNode("equi_doctor") as background:
        for camera, topic in topics.items():
            absolute = topic if topic.startswith("/") else f"{namespace.rstrip('/')}/{topic}"
            background.node.create_subscription(
                PointCloud2, absolute, partial(take, camera), qos.POINT_CLOUD, raw=True
            )
        deadline_s = time.monotonic() + settle_s
        while time.monotonic() < deadline_s and not all(heard.values()):
            time.sleep(_POLL_S)
        end_s = time.monotonic() + (duration_s if any(heard.values()) else 0.0)
        while time.monotonic() < end_s:
            time.sleep(_POLL_S)
    return heard
