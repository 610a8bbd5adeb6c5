# SPDX-License-Identifier: MIT
"""Specification of the raw reader: what ROS serialises is what it reads, without a copy."""

from __future__ import annotations

import array
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equi_perception.raw_cloud import RawCloudError, read_cloud

rclpy_serialization = pytest.importorskip("rclpy.serialization", reason="needs `source env.sh`")


def message(frame_id="cam_left_depth_optical_frame", count=7, fields=("x", "y", "z", "rgb")):
    from sensor_msgs.msg import PointCloud2, PointField

    cloud = PointCloud2()
    cloud.header.stamp.sec, cloud.header.stamp.nanosec = 1794796000, 123456789
    cloud.header.frame_id = frame_id
    cloud.height, cloud.width = 1, count
    offsets = (0, 4, 8, 16)
    cloud.fields = [
        PointField(name=name, offset=offset, datatype=PointField.FLOAT32, count=1)
        for name, offset in zip(fields, offsets, strict=False)
    ]
    cloud.point_step, cloud.row_step = 20, 20 * count
    points = np.random.default_rng(count).normal(size=(count, 5)).astype(np.float32)
    cloud.data = array.array("B", points.tobytes())
    cloud.is_dense = True
    return cloud, points


@given(st.text("abc_/", min_size=0, max_size=9), st.integers(0, 40), st.integers(3, 4))
@settings(max_examples=40, deadline=None)
def test_every_field_is_read_as_ros_wrote_it(frame_id, count, field_count):
    cloud, points = message(frame_id, count, ("x", "y", "z", "rgb")[:field_count])
    raw = rclpy_serialization.serialize_message(cloud)
    read = read_cloud(raw)
    assert read.stamp_ns == 1794796000_123456789
    assert (read.frame_id, read.height, read.width) == (frame_id, 1, count)
    assert [(f.name, f.offset) for f in read.fields] == [(f.name, f.offset) for f in cloud.fields]
    assert (read.point_step, read.row_step, read.is_bigendian) == (20, 20 * count, False)
    np.testing.assert_array_equal(np.asarray(read.points)[:, :3], points[:, :3])


def test_the_points_are_a_view_of_the_message():
    raw = rclpy_serialization.serialize_message(message(count=5)[0])
    read = read_cloud(raw)
    assert np.shares_memory(np.frombuffer(read.data, np.uint8), np.frombuffer(raw, np.uint8))


@pytest.mark.parametrize("keep", [0, 3, 10, 40, 90])
def test_a_torn_message_is_refused(keep):
    raw = bytes(rclpy_serialization.serialize_message(message()[0]))
    with pytest.raises(RawCloudError):
        read_cloud(raw[:keep])


def test_absurd_lengths_are_refused_before_anything_is_allocated():
    raw = bytearray(rclpy_serialization.serialize_message(message(frame_id="")[0]))
    raw[12:16] = struct.pack("<I", 0xFFFFFFF0)  # the length of frame_id
    with pytest.raises(RawCloudError):
        read_cloud(bytes(raw))
