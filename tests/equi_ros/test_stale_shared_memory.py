# SPDX-License-Identifier: MIT
"""Specification of the cleaning of /dev/shm: what nobody uses goes, what anybody uses stays."""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from families import wait_until

from equi_ros import stale_shared_memory
from equi_ros.stale_shared_memory import remove_stale, stale_segments


def segment(folder: Path, name: str, age_s: float = 60.0) -> Path:
    path = folder / f"fastrtps_{name}"
    for file, content in ((path, b"x" * 8192), (path.with_name(path.name + "_el"), b"")):
        file.write_bytes(content)
        os.utime(file, (time.time() - age_s,) * 2)
    return path


def test_a_segment_whose_lock_is_free_is_removed_with_its_lock(tmp_path):
    segment(tmp_path, "0123456789abcdef")
    count, n_bytes = remove_stale(tmp_path)
    assert count == 1
    assert n_bytes >= 8192
    assert list(tmp_path.iterdir()) == []


def test_what_a_living_process_locks_or_maps_stays(tmp_path, processes):
    locked, mapped = segment(tmp_path, "0" * 16), segment(tmp_path, "1" * 16)
    with open(f"{locked}_el", "rb+") as lock, mapped.open("rb+") as file:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with mmap.mmap(file.fileno(), 8192):
            assert remove_stale(tmp_path) == (0, 0)
    assert locked.exists()
    assert mapped.exists()
    assert remove_stale(tmp_path)[0] == 2


@pytest.mark.parametrize(
    "name", ["fastrtps_port7411", "sem.fastrtps_port7411_mutex", "psm_1234", "fastrtps_short"]
)
def test_files_of_another_kind_are_not_touched(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"x")
    os.utime(path, (0, 0))
    assert remove_stale(tmp_path) == (0, 0)
    assert path.exists()


@pytest.mark.parametrize(
    ("first_words", "age_s", "goes"),
    [
        (b"", 60.0, True),
        ((1).to_bytes(4, sys.byteorder) + b"x" * 60, 60.0, True),
        ((2).to_bytes(4, sys.byteorder) + b"x" * 60, 60.0, False),
        (b"", 0.0, False),
    ],
    ids=["empty", "being made", "made", "empty for a moment"],
)
def test_a_port_that_was_never_finished_is_removed(tmp_path, first_words, age_s, goes):
    port = tmp_path / "fastrtps_port7411"
    port.write_bytes(first_words)
    os.utime(port, (time.time() - age_s,) * 2)
    assert remove_stale(tmp_path)[0] == goes
    assert port.exists() != goes


@pytest.mark.ros
def test_a_node_starts_where_another_was_killed_while_it_made_its_port(processes, ros_domain_id):
    """Fast DDS itself waits for ever for whoever began to make the port."""
    port = Path("/dev/shm", f"fastrtps_port{7411 + 250 * ros_domain_id}")
    port.unlink(missing_ok=True)
    port.touch()
    os.utime(port, (time.time() - 60.0,) * 2)
    code = (
        "import rclpy\nfrom equi_ros.run_node import initialized\n"
        "with initialized():\n    rclpy.create_node('next')\n    print('up', flush=True)\n"
    )
    node = processes.start([sys.executable, "-c", code], {"ROS_DOMAIN_ID": str(ros_domain_id)})
    try:
        node.wait_for_text("up")
    finally:
        if port.exists() and port.stat().st_size == 0:
            port.unlink()
    assert node.wait_for_exit() == 0


def test_a_segment_that_was_made_just_now_stays(tmp_path):
    segment(tmp_path, "0123456789abcdef", age_s=0.0)
    assert stale_segments(tmp_path) == []


def test_the_scene_of_a_simulated_cell_goes_with_its_process(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = tmp_path / f"equi_cell_127_0_0_2_{gone.pid}.scene"
    alive = tmp_path / f"equi_cell_127_0_0_2_{os.getpid()}.scene"
    for path in (dead, alive):
        path.write_bytes(b"x")
        os.utime(path, (0, 0))
    assert remove_stale(tmp_path)[0] == 1
    assert [path.name for path in tmp_path.iterdir()] == [alive.name]


@pytest.mark.ros
@pytest.mark.timeout(120)
def test_what_a_killed_node_leaves_behind_is_found_and_removed(
    processes, ros_domain_id, monkeypatch
):
    """A real node with Fast DDS, killed as the kernel kills: its segment stays, and is cleaned."""
    monkeypatch.setattr(stale_shared_memory, "_NEWEST_S", 0.0)
    before = {path.name for path in Path("/dev/shm").glob("fastrtps_*")}
    code = (
        "import rclpy, time; rclpy.init(); node = rclpy.create_node('doomed');"
        "print('up', flush=True); time.sleep(100)"
    )
    node = processes.start([sys.executable, "-c", code], {"ROS_DOMAIN_ID": str(ros_domain_id)})
    node.wait_for_text("up")

    def own() -> set[str]:
        text = Path(f"/proc/{node.pid}/maps").read_text()
        lines = [line for line in text.splitlines() if "/dev/shm/fastrtps_" in line]
        names = {line.split("/dev/shm/")[1].split()[0] for line in lines}
        return {name for name in names if "port" not in name and name not in before}

    names = own()  # it maps those of its peers on this machine as well
    assert names
    assert not names & {item.name for item in stale_segments()}, "the node is alive"
    os.kill(node.pid, signal.SIGKILL)
    wait_until(
        lambda: names & {item.name for item in stale_segments()}, 30.0, "its segment is stale"
    )
    left = names & {item.name for item in stale_segments()}
    remove_stale()
    for name in left:
        assert not Path("/dev/shm", name).exists()
        assert not Path("/dev/shm", name + "_el").exists()
