# SPDX-License-Identifier: MIT
"""The doctor's lines about cameras, calibration and computer: one defect each."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from ros_probe import RosProbe
from sensor_msgs.msg import PointCloud2

from equi_control.doctor.calibration import check_calibration, check_serials
from equi_control.doctor.cameras import Arrival, CameraLimits, check_cameras
from equi_control.doctor.finding import Finding, Verdict, exit_code, fail, ok, warn
from equi_control.doctor.host import check_priority, check_shared_memory
from equi_control.doctor.ros_clouds import listen
from equi_core.calibration import CellCalibration
from equi_core.cell_file import CellFile
from equi_core.locations.find import find_calibration, find_cell_file

LIMITS = CameraLimits(max_age_s=0.3, max_skew_s=0.1)
DURATION_S = 2.0


def stream(rate_hz: float, *, offset_s: float = 0.0, age_s: float = 0.05) -> list[Arrival]:
    count = int(DURATION_S * rate_hz)
    stamps = [1000.0 + offset_s + index / rate_hz for index in range(count)]
    return [Arrival(stamp, stamp + age_s) for stamp in stamps]


def judged(left: list[Arrival], right: list[Arrival]) -> dict[str, Finding]:
    found = check_cameras({"cam_left": left, "cam_right": right}, DURATION_S, LIMITS)
    return {finding.check: finding for finding in found}


def test_good_cameras_have_no_complaint() -> None:
    found = judged(stream(15.0), stream(15.0, offset_s=0.01))
    assert [line.verdict for line in found.values()] == [Verdict.OK] * 4


@pytest.mark.parametrize(
    ("check", "left", "right", "verdict", "repair"),
    [
        ("camera rate", stream(15.0), [], Verdict.FAIL, "cameras:=realsense"),
        ("camera rate", stream(15.0), stream(2.0), Verdict.FAIL, "USB 3"),
        ("camera stamps", stream(15.0), stream(15.0)[::-1], Verdict.FAIL, "driver"),
        ("camera stamps", stream(15.0), [stream(15.0)[0]] * 9, Verdict.FAIL, "driver"),
        ("clock offset", stream(15.0), stream(15.0, age_s=-0.5), Verdict.FAIL, "chrony"),
        ("clock offset", stream(15.0), stream(15.0, age_s=0.9), Verdict.FAIL, "chronyc"),
        ("camera skew", stream(4.0), stream(4.0, offset_s=0.12), Verdict.FAIL, "rate"),
        ("camera skew", stream(4.0), stream(4.0, offset_s=0.07), Verdict.WARN, "rate"),
    ],
)
def test_a_defect_of_a_camera_is_named_with_its_repair(
    check: str, left: list[Arrival], right: list[Arrival], verdict: Verdict, repair: str
) -> None:
    found = judged(left, right)
    assert found[check].verdict is verdict
    assert repair in found[check].repair


@pytest.mark.ros
def test_the_listener_hears_the_stamps_of_clouds(ros_probe: RosProbe) -> None:
    publisher = ros_probe.node.create_publisher(PointCloud2, "/cell/cam_left/points", 2)
    stop = threading.Event()

    def publish() -> None:
        seconds = 100
        while not stop.wait(0.03):
            cloud = PointCloud2()
            cloud.header.stamp.sec, cloud.header.stamp.nanosec = seconds, 250_000_000
            cloud.header.frame_id = "cam_left_depth_optical_frame"
            publisher.publish(cloud)
            seconds += 1

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        topics = {"cam_left": "cam_left/points", "cam_right": "cam_right/points"}
        heard = listen(topics, duration_s=0.3, namespace="/cell", settle_s=2.0)
    finally:
        stop.set()
        thread.join()
    assert heard["cam_right"] == []
    assert len(heard["cam_left"]) > 2
    assert {round(cloud.stamp_s % 1, 6) for cloud in heard["cam_left"]} == {0.25}


@pytest.fixture(scope="module")
def cell() -> CellFile:
    return CellFile.load(find_cell_file("sim"))


@pytest.fixture(scope="module")
def calibration(cell: CellFile) -> CellCalibration:
    return CellCalibration.load(find_calibration(cell.name))


def test_a_calibration_that_passed_is_shown_with_its_age(
    cell: CellFile, calibration: CellCalibration
) -> None:
    line, read = check_calibration(
        find_calibration("sim"), cell, calibration.created + timedelta(days=2)
    )
    assert read == calibration
    assert (line.verdict, "2.0 days old" in line.found) == (Verdict.OK, True)


Change = Callable[[CellCalibration], CellCalibration]
CHANGES: dict[str, tuple[Change, Verdict, str]] = {
    "failed": (
        lambda one: dataclasses.replace(one, passed=False, problems=("cam_left has moved",)),
        Verdict.FAIL,
        "cam_left has moved",
    ),
    "expired": (lambda one: dataclasses.replace(one, valid_for_days=1.0), Verdict.FAIL, "expired"),
    "expires soon": (
        lambda one: dataclasses.replace(one, valid_for_days=4.0),
        Verdict.WARN,
        "left",
    ),
    "foreign": (lambda one: dataclasses.replace(one, cell="other"), Verdict.FAIL, "other"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_calibration_that_must_not_be_used_is_named(
    cell: CellFile, calibration: CellCalibration, tmp_path: Path, name: str
) -> None:
    change, verdict, words = CHANGES[name]
    change(calibration).save(tmp_path / "calibration.yaml")
    line, _ = check_calibration(tmp_path, cell, calibration.created + timedelta(days=2))
    assert line.verdict is verdict
    assert words in line.found
    assert "equi-calibrate" in line.repair


def test_a_missing_calibration_is_a_failure_and_its_serials_are_not_compared(
    cell: CellFile, tmp_path: Path
) -> None:
    line, read = check_calibration(tmp_path, cell)
    assert (line.verdict, read) == (Verdict.FAIL, None)
    assert check_serials(cell, read).verdict is Verdict.SKIPPED


@pytest.mark.parametrize(
    ("serial", "verdict"),
    [("12345", Verdict.FAIL), ("", Verdict.FAIL), ("any", Verdict.WARN)],
)
def test_another_device_than_the_calibrated_one_is_named(
    cell: CellFile, calibration: CellCalibration, serial: str, verdict: Verdict
) -> None:
    assert check_serials(cell, calibration).verdict is Verdict.OK
    swapped = dataclasses.replace(cell.cameras["cam_left"], serial=serial)
    other = dataclasses.replace(cell, cameras={**cell.cameras, "cam_left": swapped})
    line = check_serials(other, calibration)
    assert line.verdict is verdict
    assert "cam_left" in line.found


def test_a_refused_priority_is_a_warning_with_the_line_to_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(os, "nice", refuse)
    line = check_priority()
    assert line.verdict is Verdict.WARN
    assert "rtprio 99" in line.repair


def test_trying_the_priority_leaves_this_process_as_it_was() -> None:
    before = os.sched_getscheduler(0)
    check_priority()
    assert os.sched_getscheduler(0) == before


def test_segments_of_dead_processes_are_counted(tmp_path: Path) -> None:
    assert check_shared_memory(tmp_path).verdict is Verdict.OK
    left = tmp_path / "equi_cell_127_0_0_2_999999999.scene"
    left.write_bytes(b"by a process that is gone")
    os.utime(left, (0, 0))
    line = check_shared_memory(tmp_path)
    assert (line.verdict, "1 left" in line.found) == (Verdict.WARN, True)
    assert "--remove" in line.repair


def test_only_failures_make_the_doctor_end_with_a_failure() -> None:
    assert exit_code([ok("a", "b"), warn("a", "b", "c")]) == 0
    assert exit_code([ok("a", "b"), fail("a", "b", "c")]) == 1
