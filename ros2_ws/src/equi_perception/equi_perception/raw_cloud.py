# SPDX-License-Identifier: MIT
"""Reads a serialised sensor_msgs/PointCloud2 in place, so that megabytes need not be copied.

A subscription with `raw=True` hands over the bytes as they came off the wire (CDR, either
endianness). Only the few header numbers are decoded here; the point data stays a view of them.
"""

from __future__ import annotations

import struct

from equi_perception.cloud_layout import Cloud, Field

_HEADER_BYTES = 4  # representation identifier and options, before which alignment does not count


class RawCloudError(ValueError):
    """Bytes that are no PointCloud2."""


def read_cloud(serialised: bytes | memoryview) -> Cloud:
    """The cloud in a serialised message; its data is a view of `serialised`."""
    reader = _CdrReader(memoryview(serialised))
    try:
        seconds, nanoseconds = reader.number("i", 4), reader.number("I", 4)
        frame_id = reader.text()
        height, width = reader.number("I", 4), reader.number("I", 4)
        fields = tuple(
            Field(
                name=reader.text(),
                offset=reader.number("I", 4),
                datatype=reader.number("B", 1),
                count=reader.number("I", 4),
            )
            for _ in range(reader.length(most=64, what="fields"))
        )
        is_bigendian = bool(reader.number("B", 1))
        point_step, row_step = reader.number("I", 4), reader.number("I", 4)
        data = reader.octets()
    except (struct.error, UnicodeDecodeError) as error:
        raise RawCloudError(f"not a whole PointCloud2: {error}") from error
    return Cloud(
        stamp_ns=seconds * 1_000_000_000 + nanoseconds,
        frame_id=frame_id,
        height=height,
        width=width,
        fields=fields,
        is_bigendian=is_bigendian,
        point_step=point_step,
        row_step=row_step,
        data=data,
    )


class _CdrReader:
    """Sequential reader of CDR primitives with their alignment."""

    def __init__(self, data: memoryview) -> None:
        if len(data) < _HEADER_BYTES or data[0] != 0 or data[1] not in (0, 1):
            raise RawCloudError("the message does not start with a plain CDR header")
        self._data = data
        self._order = "<" if data[1] == 1 else ">"
        self._at = _HEADER_BYTES

    def number(self, kind: str, size: int) -> int:
        """An integer of struct type `kind`, aligned to its size."""
        self._at += -(self._at - _HEADER_BYTES) % size
        (value,) = struct.unpack_from(self._order + kind, self._data, self._at)
        self._at += size
        return int(value)

    def length(self, most: int, what: str) -> int:
        """Length of a sequence, held against what is plausible."""
        value = self.number("I", 4)
        if value > most:
            raise RawCloudError(f"{value} {what} in a PointCloud2; at most {most} are plausible")
        return value

    def text(self) -> str:
        """A string; its length counts the closing zero."""
        length = self.length(most=4096, what="characters in a name")
        text = bytes(self._data[self._at : self._at + max(length - 1, 0)]).decode()
        self._at += length
        return text

    def octets(self) -> memoryview:
        """A sequence of bytes, as a view."""
        length = self.number("I", 4)
        if self._at + length > len(self._data):
            raise RawCloudError(
                f"{length} bytes of points announced, {len(self._data) - self._at} there"
            )
        view = self._data[self._at : self._at + length]
        self._at += length
        return view
