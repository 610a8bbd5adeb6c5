# SPDX-License-Identifier: MIT
"""The fixtures that other tests rely upon: domains are exclusive, orphans are found, waits end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import ros_domains
from families import ProcessFamily, wait_until
from ros_origin import PYTEST_BESIDE_ROS
from run_guard import carriers

PYTHON = [sys.executable, "-S", "-c"]
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
KILLED_RUN = """
import subprocess, sys, time

def test_that_never_ends(processes):
    forever = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
    cell = processes.start(forever)
    with subprocess.Popen(forever, start_new_session=True) as emulator:
        print("started", cell.pid, emulator.pid, flush=True)
        time.sleep(600)
"""


def test_domains_held_at_the_same_time_differ(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(ros_domains.reserved_domain(tmp_path)) for _ in range(20)]
    assert len(set(held)) == 20
    assert all(1 <= domain <= 100 for domain in held)


def test_a_domain_is_free_again_after_its_holder_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ros_domains, "LAST_DOMAIN", ros_domains.FIRST_DOMAIN)  # a single one
    code = (
        f"import sys, time; sys.path.insert(0, {str(FIXTURES)!r})\n"
        "import ros_domains; from pathlib import Path\n"
        "ros_domains.LAST_DOMAIN = ros_domains.FIRST_DOMAIN\n"
        f"with ros_domains.reserved_domain(Path({str(tmp_path)!r})):\n"
        "    print('held', flush=True); time.sleep(600)\n"
    )
    holder = subprocess.Popen([*PYTHON, code], stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(ros_domains.NoFreeDomainError, match="are reserved"),
            ros_domains.reserved_domain(tmp_path),
        ):
            pass
        holder.kill()
        holder.wait()
        with ros_domains.reserved_domain(tmp_path) as domain:
            assert domain == ros_domains.FIRST_DOMAIN
    finally:
        holder.kill()
        holder.wait()


def test_an_orphan_in_a_session_of_its_own_fails_the_test_and_is_killed() -> None:
    family = ProcessFamily()
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)'],"
        " start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
    )
    parent = family.start([*PYTHON, code])
    orphan = int(parent.wait_for_text(r"(\d+)\n")[1])
    parent.wait_for_exit()
    with pytest.raises(AssertionError, match=f"left processes behind[^\0]*{orphan}"):
        family.close(grace_s=0.1)
    wait_until(lambda: not family.living(), 30.0, "the orphan to be gone")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_test_run_that_is_killed_leaves_nothing_behind(
    number: signal.Signals, tmp_path: Path, processes: ProcessFamily
) -> None:
    (tmp_path / "test_killed.py").write_text(KILLED_RUN)
    # With the fixtures of every other test, though the file lies elsewhere.
    where = os.pathsep.join([str(FIXTURES.parent), str(FIXTURES), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-s", "-p", "conftest", "test_killed.py"]
    run = processes.start(command, {"PYTHONPATH": where, **PYTEST_BESIDE_ROS}, cwd=tmp_path)
    started = run.wait_for_text(r"started (\d+) (\d+)")
    mark = f"EQUI_TEST_RUN_{run.pid}"
    assert {int(pid) for pid in started.groups()} <= set(carriers(mark))

    run.signal_alone(number)

    assert run.wait_for_exit() == -number
    wait_until(lambda: not carriers(mark), 30.0, "all that the killed run had started to end")


def test_a_process_that_ignores_ctrl_c_is_ended_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    family = ProcessFamily()
    code = (
        "import signal, time\n"
        "signal.signal(signal.SIGINT, lambda *_: print('no', flush=True))\n"
        "print('ready', flush=True)\n"
        "while True: time.sleep(600)\n"
    )
    stubborn = family.start([*PYTHON, code])
    stubborn.wait_for_text("ready")
    stubborn.press_ctrl_c()
    stubborn.wait_for_text("no")
    stubborn.signal_group(signal.SIGTERM)
    assert stubborn.wait_for_exit() == -signal.SIGTERM
    family.close()


def test_waiting_in_vain_says_for_what_and_shows_the_output() -> None:
    family = ProcessFamily()
    process = family.start([*PYTHON, "print('something else', flush=True); input"])
    with pytest.raises(AssertionError, match=r"(?s)before printing 'hello'.*something else"):
        process.wait_for_text("hello")
    with pytest.raises(AssertionError, match=r"in vain for the moon"):
        wait_until(lambda: False, 0.05, "the moon")
    family.close()


@pytest.mark.ros
def test_a_ros_test_has_its_domain_in_the_environment(ros_domain_id: int) -> None:
    assert os.environ["ROS_DOMAIN_ID"] == str(ros_domain_id)
    assert os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"


def test_ctrl_c_reaches_children_even_if_the_tests_run_in_the_background(
    processes: ProcessFamily,
) -> None:
    code = "import time\nprint('ready', flush=True)\ntime.sleep(600)"
    child = processes.start([*PYTHON, code])
    child.wait_for_text("ready")
    child.press_ctrl_c()
    child.wait_for_exit()
    assert "KeyboardInterrupt" in child.output
