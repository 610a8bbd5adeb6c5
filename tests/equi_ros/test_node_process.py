# SPDX-License-Identifier: MIT
"""A node's process can be stopped from its first line on, in time, and ends with its launch."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from families import wait_until

from equi_ros.node_process import END_TIMEOUT_S

pytestmark = pytest.mark.timeout(180)

# Imports for ever, in C code that handles no signal, as the loading of a large library does.
SLOW_IMPORT = """
print("importing", flush=True)
import re
re.match(r"(a+)+$", "a" * 60 + "b")
"""
STARTED_BY = """
import subprocess, sys, os
launched = {"EQUI_LAUNCH_PID": str(os.getpid())} if sys.argv[2] == "launch" else {}
child = subprocess.Popen(
    [sys.executable, "-c", sys.argv[1]], start_new_session=True, env={**os.environ, **launched}
)
print("child", child.pid, flush=True)
child.wait()
"""
NODE = """
import signal, sys, time
from equi_ros.node_process import make_stoppable
make_stoppable()
def end(*_):
    print("asked to end: the pipe may be broken", flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, end)
print("running", flush=True)
while True:
    time.sleep(0.05)
"""
HANGING = """
import signal, sys
from equi_ros.node_process import end_in_time
from equi_ros.shutdown_signal import ShutdownSignal
shutdown = ShutdownSignal(end_in_time)
shutdown.listen()
shutdown.ignore()
print("hanging", flush=True)
import re
while True:
    re.match(r"(a+)+$", "a" * 20 + "b")
"""


SLOW_TO_LEAVE = """
import re, signal, sys
from equi_ros.node_process import end_in_time, leaving_in_time
from equi_ros.shutdown_signal import ShutdownSignal
shutdown = ShutdownSignal(end_in_time)
shutdown.listen()
with leaving_in_time(3):
    print("left in time", flush=True)
try:
    print("running", flush=True)
    signal.pause()
except KeyboardInterrupt:
    with leaving_in_time(int(sys.argv[1])):
        re.match(r"(a+)+$", "a" * 60 + "b")  # in C, with Python's lock
"""


@pytest.mark.parametrize("ignored", [False, True])
def test_ctrl_c_ends_a_node_that_still_imports_also_as_a_background_job(
    processes: Any, tmp_path: Path, ignored: bool
) -> None:
    (tmp_path / "slow_node.py").write_text(SLOW_IMPORT)
    # A shell starts a background job with SIGINT ignored.
    ignore = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" if ignored else ""
    code = f"{ignore}from equi_ros.node_process import executable\nexecutable('slow_node')()"
    node = processes.start([sys.executable, "-c", code], cwd=tmp_path)
    node.wait_for_text("importing")

    node.signal_alone(signal.SIGINT)

    assert node.wait_for_exit(10.0) == -signal.SIGINT
    assert "Traceback" not in node.output


def test_a_process_that_hangs_after_a_signal_is_ended_in_time_and_shows_where(
    processes: Any,
) -> None:
    node = processes.start([sys.executable, "-c", HANGING])
    node.wait_for_text("hanging")
    began_s = time.monotonic()

    node.signal_alone(signal.SIGTERM)

    assert node.wait_for_exit(60.0) == 1
    assert time.monotonic() - began_s >= END_TIMEOUT_S
    assert "Timeout" in node.output


@pytest.mark.parametrize("code", [0, 1])
def test_a_process_that_has_only_ros_left_to_close_ends_in_time_without_a_word(
    processes: Any, code: int
) -> None:
    node = processes.start([sys.executable, "-c", SLOW_TO_LEAVE, str(code)])
    node.wait_for_text("running")
    began_s = time.monotonic()

    node.signal_alone(signal.SIGINT)

    assert node.wait_for_exit(60.0) == code
    assert time.monotonic() - began_s >= END_TIMEOUT_S - 0.2
    assert node.output == "left in time\nrunning\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_node_ends_when_its_launch_dies_without_a_word(
    processes: Any, number: signal.Signals
) -> None:
    launch = processes.start([sys.executable, "-c", STARTED_BY, NODE, "launch"])
    launch.wait_for_text("running")
    assert len(processes.living()) == 2

    launch.signal_alone(number)

    wait_until(lambda: not processes.living(), 20.0, "no process is left")


def test_a_node_that_somebody_started_by_hand_outlives_its_parent(processes: Any) -> None:
    parent = processes.start([sys.executable, "-c", STARTED_BY, NODE, "by hand"])
    child = int(parent.wait_for_text(r"child (\d+)")[1])
    parent.wait_for_text("running")

    parent.signal_alone(signal.SIGKILL)
    parent.wait_for_exit()

    time_to_notice = time.monotonic() + 1.0
    while time.monotonic() < time_to_notice:
        assert child in processes.living()
    os.kill(child, signal.SIGKILL)
