# SPDX-License-Identifier: MIT
"""The demonstration keeps to itself: it must never meet a robot that also runs."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest
from families import PATIENCE_S, ProcessFamily, wait_until

from equi_core.scene_seeds import TEST_SEED
from equi_evaluation.demo import demo_environment, main, telling_seed

LAST_OUTGOING_PORT = 60999
"""Upper end of Linux's range for outgoing connections."""


def ports_of(domain: int) -> tuple[int, int]:
    """First and last UDP port of a ROS domain with a hundred participants."""
    first = 7400 + 250 * domain
    return first, first + 11 + 2 * 100


def test_an_exported_domain_is_left_because_a_robot_may_listen_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for exported in ("0", "42", "101"):
        monkeypatch.setenv("ROS_DOMAIN_ID", exported)

        assert demo_environment()["ROS_DOMAIN_ID"] != exported


def test_every_domain_of_the_demonstration_has_free_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    for process in range(100_000, 100_017):
        monkeypatch.setattr("os.getpid", lambda process=process: process)

        first, last = ports_of(int(demo_environment()["ROS_DOMAIN_ID"]))

        assert first > LAST_OUTGOING_PORT
        assert last < 65536


def test_everything_else_of_the_shell_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMW_IMPLEMENTATION", "rmw_of_this_lab")

    assert demo_environment()["RMW_IMPLEMENTATION"] == "rmw_of_this_lab"


@pytest.mark.ros
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_its_cell_does_not_stay_behind_when_the_demonstration_is_ended(
    processes: ProcessFamily, tmp_path: Path, number: signal.Signals
) -> None:
    demo = processes.start([sys.executable, "-m", "equi_evaluation.demo", "--output", tmp_path])
    log = tmp_path / "launch.log"
    wait_until(
        lambda: log.is_file() and "process started" in log.read_text(), PATIENCE_S, "the cell"
    )

    demo.signal_alone(number)

    demo.wait_for_exit(PATIENCE_S)
    wait_until(lambda: not processes.living(), PATIENCE_S, "no process is left")


@pytest.mark.parametrize("count", ["0", "-3"])
def test_no_cell_is_started_for_no_episodes(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([f"--episodes={count}"])
    assert ended.value.code == 2
    assert f"--episodes is {count}; it must be at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "task", ["block_picking", "block_pulling", "block_pushing", "drawer_opening"]
)
def test_the_demonstration_begins_with_scenes_in_which_memory_is_needed(
    task: str, repository_root: Path
) -> None:
    model = repository_root / "models" / task
    episodes = json.loads((model / "evaluation.json").read_text())["episodes"]
    seed = telling_seed(model, 2)
    assert seed >= TEST_SEED  # never one that a policy was trained or selected on
    shown = [episode for episode in episodes if episode["seed"] in (seed, seed + 1)]
    assert [episode["movable_first"] for episode in shown] == [False, False]
    assert all(episode["success"] for episode in shown)


def test_without_an_evaluation_the_demonstration_takes_the_first_test_scene(tmp_path: Path) -> None:
    assert telling_seed(tmp_path, 2) == telling_seed(None, 2) == TEST_SEED
    (tmp_path / "evaluation.json").write_text('{"episodes": [{"seed": 1}]}')
    assert telling_seed(tmp_path, 2) == TEST_SEED
