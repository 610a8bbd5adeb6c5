# SPDX-License-Identifier: MIT
"""The installer's memory: what is done stays done, what was interrupted is done again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from installer import install, python_env, stamps, workspace
from installer.layout import Layout, SetupError
from installer.steps import Step


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "ros2_ws" / "src").mkdir(parents=True)
    (tmp_path / ".venv" / ".setup").mkdir(parents=True)
    return Layout(tmp_path)


class CountingStep:
    """A step that counts how often it acts, and can be told to fail."""

    def __init__(self) -> None:
        self.inputs = "first"
        self.acted = 0
        self.error: Exception | None = None
        self.result_exists = True

    def step(self) -> Step:
        return Step("counting", "a step", self.key, self.act, lambda: self.result_exists)

    def key(self) -> str:
        return stamps.digest([self.inputs])

    def act(self, _: Path) -> None:
        self.acted += 1
        if self.error:
            raise self.error

    def run_if_needed(self, layout: Layout) -> None:
        if not install.is_done(layout, self.step()):
            install.perform(layout, self.step(), "[1/1]")


def test_a_step_that_succeeded_is_not_repeated(layout: Layout) -> None:
    counting = CountingStep()
    counting.run_if_needed(layout)
    counting.run_if_needed(layout)
    assert counting.acted == 1


def test_a_step_whose_inputs_changed_is_repeated(layout: Layout) -> None:
    counting = CountingStep()
    counting.run_if_needed(layout)
    counting.inputs = "second"
    counting.run_if_needed(layout)
    assert counting.acted == 2


def test_a_step_whose_result_was_removed_is_repeated(layout: Layout) -> None:
    counting = CountingStep()
    counting.run_if_needed(layout)
    counting.result_exists = False
    counting.run_if_needed(layout)
    assert counting.acted == 2


@pytest.mark.parametrize("error", [SetupError("broken", "mend it"), OSError(28, "No space left")])
def test_a_step_that_failed_names_itself_and_is_repeated(layout: Layout, error: Exception) -> None:
    counting = CountingStep()
    counting.error = error
    with pytest.raises(SetupError, match=r"step \[1/1\] 'a step' failed") as caught:
        counting.run_if_needed(layout)
    assert caught.value.way_out
    counting.error = None
    counting.run_if_needed(layout)
    assert counting.acted == 2


@pytest.mark.parametrize("content", ["", "{", '"text"', '{"key": "another"}'])
def test_a_damaged_stamp_counts_as_none(layout: Layout, content: str) -> None:
    counting = CountingStep()
    install.stamp_path(layout, counting.step()).write_text(content)
    counting.run_if_needed(layout)
    assert counting.acted == 1


def test_a_stamp_is_never_seen_half_written(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = layout.stamps / "x.json"
    stamps.write_atomically(path, {"key": "old"})

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", killed)
    with pytest.raises(KeyboardInterrupt):
        stamps.write_atomically(path, {"key": "new"})
    assert json.loads(path.read_text()) == {"key": "old"}


def test_what_a_killed_run_left_running_is_ended_and_nothing_else(tmp_path: Path) -> None:
    sleeper = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
    leftover = subprocess.Popen(sleeper, env={**os.environ, "EQUI_SETUP_RUN": "the-token"})
    stranger = subprocess.Popen(sleeper, env={**os.environ, "EQUI_SETUP_RUN": "another"})
    try:
        marker = tmp_path / stamps.RUNNING
        stamps.write_atomically(marker, {"step": "torch", "token": "the-token"})
        assert stamps.end_leftovers(marker) == [leftover.pid]
        assert leftover.wait(timeout=60) == -9
        assert stranger.poll() is None
    finally:
        for process in (leftover, stranger):
            process.kill()
            process.wait()


def test_a_package_without_its_list_of_files_is_installed_again(layout: Layout) -> None:
    site = layout.venv / "lib" / "python3.11" / "site-packages"
    for name, files in {"whole-1.0": ["METADATA", "RECORD"], "half-2.0": ["METADATA"]}.items():
        (site / f"{name}.dist-info").mkdir(parents=True)
        for file in files:
            (site / f"{name}.dist-info" / file).touch()
    (site / "~orch").mkdir()
    assert python_env.drop_broken_packages(layout, thorough=False) == ["half-2.0"]
    assert sorted(path.name for path in site.iterdir()) == ["whole-1.0.dist-info"]


def test_a_truncated_file_is_found_after_a_kill(layout: Layout) -> None:
    site = layout.venv / "lib" / "python3.11" / "site-packages"
    (site / "cut-1.0.dist-info").mkdir(parents=True)
    (site / "cut-1.0.dist-info" / "METADATA").touch()
    (site / "cut-1.0.dist-info" / "RECORD").write_text("cut/a.so,sha256=x,1000\n")
    (site / "cut").mkdir()
    (site / "cut" / "a.so").write_bytes(b"x" * 999)
    assert python_env.drop_broken_packages(layout, thorough=False) == []
    assert python_env.drop_broken_packages(layout, thorough=True) == ["cut-1.0"]


def test_a_half_made_environment_is_made_again(layout: Layout) -> None:
    wanted = python_env.wanted_identity(layout, None)
    (layout.venv / "bin").mkdir()
    (layout.venv / "bin" / "python").touch()  # killed before the environment was complete
    assert not python_env.environment_is_usable(layout, wanted)
    python_env.make_environment(layout, wanted, layout.logs / "x.log", dict(os.environ))
    assert python_env.environment_is_usable(layout, wanted)
    assert (layout.venv / "COLCON_IGNORE").exists()
    answer = subprocess.run(
        [layout.python, "-c", "import sys; print(sys.prefix)"], capture_output=True
    )
    assert answer.stdout.decode().strip() == str(layout.venv)


def test_an_environment_of_somebody_else_is_moved_aside_not_deleted(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.venv.mkdir()
    (layout.venv / "precious.txt").write_text("mine")
    wanted = python_env.wanted_identity(layout, None)
    python_env.make_environment(layout, wanted, layout.logs / "x.log", dict(os.environ))
    (kept,) = tmp_path.glob(".venv.*.bak")
    assert (kept / "precious.txt").read_text() == "mine"


def test_a_moved_checkout_gets_a_new_environment(layout: Layout, tmp_path: Path) -> None:
    wanted = python_env.wanted_identity(layout, None)
    stamps.write_atomically(layout.stamps / python_env.IDENTITY, {**wanted, "id": "x"})
    (layout.venv / "bin").mkdir()
    layout.python.touch()
    assert python_env.environment_is_usable(layout, wanted)
    moved = Layout(tmp_path.with_name(f"{tmp_path.name}_moved"))
    tmp_path.rename(moved.root)
    assert not python_env.environment_is_usable(moved, python_env.wanted_identity(moved, None))


def test_links_to_files_that_are_gone_are_removed_before_a_build(tmp_path: Path) -> None:
    source, build = tmp_path / "src", tmp_path / "build" / "equi_policy" / "launch"
    source.mkdir()
    build.mkdir(parents=True)
    for name in ("here.launch.py", "gone.launch.py"):
        (build / name).symlink_to(source / name)
    (source / "here.launch.py").touch()
    workspace.remove_dangling_links(tmp_path / "build", ["equi_policy", "not_built_yet"])
    assert [path.name for path in build.iterdir()] == ["here.launch.py"]
