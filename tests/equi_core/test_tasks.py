# SPDX-License-Identifier: MIT
"""Names of tasks: the shipped ones, and those of plug-ins, which are read and not imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from equi_core.locations.tasks import PLUGINS_VARIABLE, SHIPPED_TASKS, PluginError, known_tasks
from equi_rl.envs import registry


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_training_has_an_environment_for_every_shipped_task() -> None:
    assert list(registry._ENTRY_POINTS)[: len(SHIPPED_TASKS)] == list(SHIPPED_TASKS)


def test_without_plug_ins_the_shipped_tasks_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PLUGINS_VARIABLE, raising=False)
    assert known_tasks() == SHIPPED_TASKS


def test_the_task_of_a_plug_in_is_known_although_its_imports_are_not_installed(
    plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plugins / "my_lab").mkdir()
    (plugins / "my_lab" / "__init__.py").touch()
    (plugins / "my_lab" / "lids.py").write_text(
        "import a_physics_engine\n"
        "from training import registry\n"
        "registry.register_task('loose_lid', f'{__name__}:LooseLid')\n"
        "registry.register_task('block_picking', 'again:Again')\n"
        "registry.register_expert('no_task', None)\n"
    )
    monkeypatch.setenv(PLUGINS_VARIABLE, " my_lab.lids,")
    assert known_tasks() == (*SHIPPED_TASKS, "loose_lid")
    assert "my_lab.lids" not in sys.modules


def test_an_installed_package_names_its_plug_in_by_an_entry_point(
    plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PLUGINS_VARIABLE, raising=False)
    (plugins / "heavy.py").write_text("register_task('heavy_block', 'heavy:Heavy')\n")
    info = plugins / "heavy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: heavy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[equi.plugins]\nheavy = heavy\n")
    assert known_tasks() == (*SHIPPED_TASKS, "heavy_block")


@pytest.mark.parametrize("module", ["no_such_plugin", "no_such_package.tasks", "broken"])
def test_a_plug_in_that_cannot_be_read_is_named(
    plugins: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    (plugins / "broken.py").write_text("register_task('a'\n")
    monkeypatch.setenv(PLUGINS_VARIABLE, module)
    with pytest.raises(PluginError, match=f"plug-in '{module}' of EQUI_PLUGINS cannot be imported"):
        known_tasks()


@pytest.mark.parametrize(
    ("words", "plugin", "code", "said"),
    [
        (
            ["ros2", "launch", "equi_policy", "sim2real.launch.py", "-s"],
            "loose_lid",
            0,
            "loose_lid",
        ),
        (["ros2", "run", "equi_evaluation", "demo", "--help"], "loose_lid", 0, "loose_lid"),
        (
            ["ros2", "run", "equi_evaluation", "demo", "--task", "loose_lit"],
            "loose_lid",
            2,
            "'loose_lit'",
        ),
        (
            ["ros2", "run", "equi_evaluation", "demo"],
            "no_such_plugin",
            2,
            "plug-in 'no_such_plugin'",
        ),
        (
            ["ros2", "launch", "equi_policy", "sim2real.launch.py"],
            "no_such_plugin",
            1,
            "plug-in 'no_such_plugin' of EQUI_PLUGINS cannot be imported",
        ),
    ],
)
def test_launch_file_and_demo_know_the_tasks_of_plug_ins(
    repository_root: Path, words: list[str], plugin: str, code: int, said: str
) -> None:
    path = f"{repository_root / 'training' / 'examples'}{os.pathsep}{os.environ['PYTHONPATH']}"
    env = {**os.environ, "PYTHONPATH": path, PLUGINS_VARIABLE: plugin}
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr
