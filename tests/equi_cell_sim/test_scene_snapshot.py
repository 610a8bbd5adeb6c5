# SPDX-License-Identifier: MIT
"""Specification of the scene file: whole scenes or none, restarts noticed, costs nothing."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from equi_cell_sim.scene_snapshot import MAX_SHAPES, SceneReader, SceneWriter, SnapshotError
from equi_rl.sim.raycast import ShapeTable


def table(value: float, count: int = 3) -> ShapeTable:
    return ShapeTable(
        kind=np.zeros(count, dtype=np.int64),
        size_m=np.full((count, 3), value),
        rotation=np.full((count, 3, 3), value),
        position_m=np.full((count, 3), value),
        colour=np.full((count, 3), value),
        body=np.full(count, int(value), dtype=np.int64),
    )


def test_the_reader_sees_what_was_written_last(tmp_path):
    writer = SceneWriter(tmp_path / "scene")
    reader = SceneReader(tmp_path / "scene")
    writer.publish(table(1.0), 111)
    writer.publish(table(2.0, count=5), 222)
    seen, stamp_ns = reader.read()
    assert stamp_ns == 222
    assert len(seen) == 5
    for name in ("size_m", "rotation", "position_m", "colour"):
        np.testing.assert_array_equal(getattr(seen, name), getattr(table(2.0, 5), name))


def test_without_a_cell_the_reader_says_so(tmp_path):
    with pytest.raises(SnapshotError, match="start the simulated cell"):
        SceneReader(tmp_path / "scene").read()


def test_before_the_first_scene_nothing_is_made_up(tmp_path):
    SceneWriter(tmp_path / "scene")
    with pytest.raises(SnapshotError, match="never complete"):
        SceneReader(tmp_path / "scene").read(attempts=3)


def test_a_restarted_cell_is_followed(tmp_path):
    path = tmp_path / "scene"
    reader = SceneReader(path)
    SceneWriter(path).publish(table(1.0), 1)
    reader.read()
    SceneWriter(path).publish(table(7.0), 2)
    assert reader.read()[0].position_m[0, 0] == 7.0


def test_a_foreign_file_is_refused(tmp_path):
    (tmp_path / "scene").write_bytes(b"not a scene")
    with pytest.raises(SnapshotError, match="not a scene"):
        SceneReader(tmp_path / "scene").read()


def test_too_many_shapes_are_refused(tmp_path):
    with pytest.raises(SnapshotError, match=str(MAX_SHAPES)):
        SceneWriter(tmp_path / "scene").publish(table(1.0, MAX_SHAPES + 1))


def test_no_reader_ever_sees_half_a_scene(tmp_path):
    writer = SceneWriter(tmp_path / "scene")
    writer.publish(table(0.0, 40), 0)
    reader = SceneReader(tmp_path / "scene")
    end = threading.Event()

    def write() -> None:
        number = 0
        while not end.wait(0.0005):  # forty times as often as the cell does
            number += 1
            writer.publish(table(float(number % 1000), 40), number)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(2000):
            seen, stamp_ns = reader.read()
            values = {seen.size_m.min(), seen.size_m.max(), seen.colour.min(), seen.colour.max()}
            assert values == {float(stamp_ns % 1000)}
    finally:
        end.set()
        thread.join()
