# SPDX-License-Identifier: MIT
"""Specification of cloud decoding: every layout gives the same points; RealSense's is a view."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equi_perception.cloud_layout import FLOAT32, FLOAT64, Cloud, CloudLayoutError, Field, xyz_rows

POINTS = np.array(
    [[0.1, -0.2, 0.9], [np.nan, np.nan, np.nan], [0.0, 0.0, 0.0], [1.5, 2.5, 3.5]], np.float32
)


def message(
    points: np.ndarray,
    *,
    offsets=(0, 4, 8),
    point_step=12,
    datatype=FLOAT32,
    bigendian=False,
    height=1,
    row_padding=0,
    extra=(),
) -> Cloud:
    """A cloud laid out byte by byte, by means other than those under test."""
    order, kind = (">" if bigendian else "<"), ("f8" if datatype == FLOAT64 else "f4")
    width = len(points) // height
    rows = []
    for row in points.reshape(height, width, 3):
        line = b""
        for point in row:
            record = bytearray(b"\xab" * point_step)
            for value, offset in zip(point, offsets, strict=True):
                coded = np.array(value, dtype=order + kind).tobytes()
                record[offset : offset + len(coded)] = coded
            line += bytes(record)
        rows.append(line + b"\xcd" * row_padding)
    return Cloud(
        stamp_ns=0,
        frame_id="cam",
        height=height,
        width=width,
        fields=(
            *(Field(n, o, datatype) for n, o in zip("xyz", offsets, strict=True)),
            *extra,
        ),
        is_bigendian=bigendian,
        point_step=point_step,
        row_step=width * point_step + row_padding,
        data=b"".join(rows),
    )


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"point_step": 16},
        {"point_step": 20, "extra": (Field("rgb", 16, FLOAT32),)},
        {"height": 2},
        {"height": 2, "row_padding": 8},
        {"offsets": (8, 4, 0)},
        {"offsets": (4, 8, 12), "point_step": 18},
        {"datatype": FLOAT64, "offsets": (0, 8, 16), "point_step": 24},
        {"bigendian": True},
        {"point_step": 13},
    ],
)
def test_every_layout_gives_the_same_points(layout):
    rows = xyz_rows(message(POINTS, **layout))
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows[:, :3], POINTS)


@given(st.integers(1, 50), st.integers(12, 40), st.integers(0, 9), st.integers(0, 1000))
@settings(max_examples=40, deadline=None)
def test_any_point_step_and_row_padding_can_be_read(count, point_step, padding, seed):
    points = np.random.default_rng(seed).normal(size=(2 * count, 3)).astype(np.float32)
    cloud = message(points, point_step=point_step, height=2, row_padding=padding)
    np.testing.assert_array_equal(xyz_rows(cloud)[:, :3], points)


def test_realsense_points_are_a_view_of_the_message():
    data = np.zeros((4, 5), dtype=np.float32)
    data[:, :3] = POINTS
    cloud = Cloud(0, "cam", 1, 4, message(POINTS).fields, False, 20, 80, data.view(np.uint8).data)
    assert np.shares_memory(xyz_rows(cloud), data)


def test_an_empty_cloud_has_no_points():
    assert xyz_rows(Cloud(0, "cam", 1, 0, message(POINTS).fields, False, 12, 0, b"")).shape == (
        0,
        3,
    )


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"fields": (Field("x", 0, FLOAT32), Field("y", 4, FLOAT32))}, "'z'"),
        ({"fields": tuple(Field(n, 4 * i, 2) for i, n in enumerate("xyz"))}, "datatype 2"),
        ({"point_step": 8}, "point_step"),
        ({"row_step": 4}, "row_step"),
        ({"data": b"\0" * 10}, "holds 10 bytes"),
    ],
)
def test_an_impossible_layout_is_refused_by_name(changes, word):
    sound = message(POINTS)
    with pytest.raises(CloudLayoutError, match=word):
        xyz_rows(Cloud(**{**vars(sound), **changes}))
