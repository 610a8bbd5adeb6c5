# SPDX-License-Identifier: MIT
"""Point clouds as drivers send them -> rows of float32 x, y, z, without a copy where possible.

Understands every layout of PointCloud2 that has fields x, y and z: any order, padding, colour or
intensity behind them, float32 or float64, organised or not, rows with padding, either endianness.
RealSense's own (x, y, z, 4 bytes of padding, rgb: 20 bytes a point) is passed on as a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT32, FLOAT64 = 7, 8
"""Values of sensor_msgs/PointField.datatype that coordinates may have."""
_WIDTH = {FLOAT32: 4, FLOAT64: 8}


class CloudLayoutError(ValueError):
    """A cloud that cannot be read; names the field or size at fault."""


@dataclass(frozen=True)
class Field:
    """One field of a point: the part of sensor_msgs/PointField that matters."""

    name: str
    offset: int
    datatype: int
    count: int = 1


@dataclass(frozen=True, eq=False)
class Cloud:
    """A point cloud message, independent of ROS."""

    stamp_ns: int
    frame_id: str
    height: int
    width: int
    fields: tuple[Field, ...]
    is_bigendian: bool
    point_step: int
    row_step: int
    data: Any
    """Bytes-like object of at least height * row_step bytes."""

    @property
    def points(self) -> NDArray[np.float32]:
        """Rows (N, C >= 3) of float32 whose first three columns are x, y, z."""
        return xyz_rows(self)


def xyz_rows(cloud: Cloud) -> NDArray[np.float32]:
    """Points (height * width, C) of a cloud; columns beyond the third are whatever follows.

    A view of the message's bytes if x, y, z are packed float32 at the front of each point, else a
    copy. Invalid points stay as the driver marked them (NaN or zeros).
    """
    x, y, z = (_coordinate(cloud.fields, name) for name in "xyz")
    count = cloud.height * cloud.width
    if count == 0:
        return np.zeros((0, 3), dtype=np.float32)
    widest = max(field.offset + _WIDTH[field.datatype] for field in (x, y, z))
    if cloud.point_step < widest:
        raise CloudLayoutError(
            f"point_step is {cloud.point_step} bytes; fields x, y, z reach to byte {widest}"
        )
    if cloud.row_step < cloud.width * cloud.point_step:
        raise CloudLayoutError(
            f"row_step is {cloud.row_step} bytes; {cloud.width} points of {cloud.point_step} bytes "
            f"need {cloud.width * cloud.point_step}"
        )
    data = np.frombuffer(cloud.data, dtype=np.uint8)
    needed = (cloud.height - 1) * cloud.row_step + cloud.width * cloud.point_step
    if data.size < needed:
        raise CloudLayoutError(
            f"the cloud holds {data.size} bytes; {cloud.height} x {cloud.width} points "
            f"need {needed}"
        )
    packed = (
        not cloud.is_bigendian
        and all(field.datatype == FLOAT32 for field in (x, y, z))
        and (x.offset, y.offset, z.offset) == (0, 4, 8)
        and cloud.point_step % 4 == 0
        and (cloud.height == 1 or cloud.row_step == cloud.width * cloud.point_step)
        and data.ctypes.data % 4 == 0
    )
    if packed:
        floats = data[: count * cloud.point_step].view(np.float32)
        return floats.reshape(count, cloud.point_step // 4)
    return _gathered(cloud, data, (x, y, z))


def _gathered(
    cloud: Cloud, data: NDArray[np.uint8], coordinates: Sequence[Field]
) -> NDArray[np.float32]:
    """Coordinates of an unusual layout, copied field by field."""
    order = ">" if cloud.is_bigendian else "<"
    dtype = np.dtype(
        {
            "names": ["x", "y", "z"],
            "formats": [f"{order}f{_WIDTH[field.datatype]}" for field in coordinates],
            "offsets": [field.offset for field in coordinates],
            "itemsize": cloud.point_step,
        }
    )
    points = np.empty((cloud.height, cloud.width, 3), dtype=np.float32)
    for row in range(cloud.height):
        start = row * cloud.row_step
        records = data[start : start + cloud.width * cloud.point_step].view(dtype)
        for column, name in enumerate("xyz"):
            points[row, :, column] = records[name]
    return points.reshape(-1, 3)


def _coordinate(fields: Sequence[Field], name: str) -> Field:
    for field in fields:
        if field.name == name:
            if field.datatype not in _WIDTH or field.count not in (0, 1):
                raise CloudLayoutError(
                    f"field '{name}' has datatype {field.datatype} and count {field.count}; "
                    f"it must be one float32 ({FLOAT32}) or float64 ({FLOAT64})"
                )
            return field
    known = ", ".join(field.name for field in fields) or "none"
    raise CloudLayoutError(f"the cloud has no field '{name}' (its fields: {known})")
