# SPDX-License-Identifier: MIT
"""Specification of run folders: whole files, one configuration, one process."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress

import numpy as np
import pytest
from full_disk import files_limited_to

from equi_rl.data import folder_lease
from equi_rl.data.atomic_file import NotWrittenError, write_atomically
from equi_rl.data.folder_lease import FolderInUseError
from equi_rl.training.run_folder import RunFolder, RunFolderError

CONFIG = {"domain": "somewhere", "a2c": {"learning_rate": 0.1}, "seeds": [0, 1]}


def test_a_fresh_folder_records_configuration_code_and_environment(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with folder.claim(CONFIG, resume=False):
        record = folder.read_config()
    assert record["config"] == CONFIG
    assert record["code_version"]
    assert {"python", "torch", "numpy"} <= record["environment"].keys()


def test_a_folder_of_another_configuration_is_refused_naming_the_field(tmp_path):
    folder = RunFolder(tmp_path)
    with folder.claim(CONFIG, resume=False):
        pass
    other = {**CONFIG, "a2c": {"learning_rate": 0.2}}
    message = r"a2c\.learning_rate = 0\.1 there, 0\.2 here"
    with pytest.raises(RunFolderError, match=message), folder.claim(other, resume=True):
        pass
    assert folder.read_config()["config"] == CONFIG  # untouched


def test_a_finished_run_is_extended_by_a_larger_budget_and_by_nothing_else(tmp_path):
    folder, config = RunFolder(tmp_path), {**CONFIG, "rounds": 5}
    with folder.claim(config, resume=False):
        folder.finish({"rounds": 5})
    for rounds in (4, 0):
        with (
            pytest.raises(RunFolderError, match=rf"rounds = 5 there, {rounds} here.*larger"),
            folder.claim({**config, "rounds": rounds}, resume=True, budgets=["rounds"]),
        ):
            pass
    with (
        pytest.raises(RunFolderError, match="--resume"),
        folder.claim({**config, "rounds": 8}, resume=False, budgets=["rounds"]),
    ):
        pass
    assert folder.is_finished
    assert folder.read_config()["config"] == config
    for rounds, ended in ((8, [{"rounds": 5}]), (9, [{"rounds": 5}, {"rounds": 8}])):
        with folder.claim({**config, "rounds": rounds}, resume=True, budgets=["rounds"]):
            assert not folder.is_finished
            folder.finish({"rounds": rounds})
        assert folder.read_config()["config"]["rounds"] == rounds
        assert folder.read_config()["extended_from"] == ended


def test_a_folder_with_a_run_is_not_overwritten_by_accident(tmp_path):
    folder = RunFolder(tmp_path)
    with folder.claim(CONFIG, resume=False):
        pass
    with pytest.raises(RunFolderError, match="--resume"), folder.claim(CONFIG, resume=False):
        pass


def test_a_folder_in_use_is_refused(tmp_path):
    folder, second = RunFolder(tmp_path), RunFolder(tmp_path)
    with (
        folder.claim(CONFIG, resume=False),
        pytest.raises(RunFolderError, match="in use"),
        second.claim(CONFIG, resume=True),
    ):
        pass
    with second.claim(CONFIG, resume=True):  # free again
        pass


def left_by_another_machine(folder, age_s):
    """A folder in which another machine works, or did."""
    owner = folder / ".owner.json"
    owner.write_text(json.dumps({"machine": "far-away boot-1", "pid": 77, "token": "t"}))
    then = time.time() - age_s
    os.utime(owner, (then, then))


def test_a_folder_in_use_by_another_machine_is_refused_by_name(tmp_path):
    left_by_another_machine(tmp_path, age_s=20)
    message = (
        r"in use by machine far-away \(process 77\), which gave a sign of life (19|20|21) s ago"
    )
    folder = RunFolder(tmp_path)
    with pytest.raises(FolderInUseError, match=message), folder.claim(CONFIG, resume=True):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {".owner.json", ".lock"}


def test_the_folder_of_a_lost_machine_is_taken_over(tmp_path):
    left_by_another_machine(tmp_path, age_s=folder_lease.DEAD_AFTER_S + 5)
    with RunFolder(tmp_path).claim(CONFIG, resume=True):
        owner = json.loads((tmp_path / ".owner.json").read_text())
        assert owner["pid"] == os.getpid()
    assert not (tmp_path / ".owner.json").exists()


def until_noticed(folder):
    deadline = time.monotonic() + 30
    with suppress(FolderInUseError):
        while time.monotonic() < deadline:
            folder.require_held()


def test_a_machine_that_comes_back_writes_nothing_into_a_folder_that_was_taken_over(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(folder_lease, "RENEW_EVERY_S", 0.01)
    folder = RunFolder(tmp_path)
    with folder.claim(CONFIG, resume=False):
        folder.append_progress([{"steps": 1}])
        left_by_another_machine(tmp_path, age_s=0)
        until_noticed(folder)
        with pytest.raises(FolderInUseError, match="taken over by machine far-away"):
            folder.finish({})
        with pytest.raises(FolderInUseError):
            folder.append_progress([{"steps": 2}])
    assert folder.read_progress() == [{"steps": "1"}]
    assert json.loads((tmp_path / ".owner.json").read_text())["pid"] == 77  # still theirs


def test_a_sign_of_life_is_renewed(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_lease, "RENEW_EVERY_S", 0.01)
    owner = tmp_path / ".owner.json"
    with RunFolder(tmp_path).claim(CONFIG, resume=False):
        os.utime(owner, (0, 0))
        deadline = time.monotonic() + 30
        while owner.stat().st_mtime < 1:
            assert time.monotonic() < deadline


def test_a_checkpoint_returns_what_was_saved(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.load_checkpoint() is None
    arrays = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.array([True, False])}
    state = {"updates": 3, "generator": np.random.default_rng(0).bit_generator.state}
    folder.save_checkpoint(arrays, state)
    checkpoint = folder.load_checkpoint()
    assert checkpoint is not None
    loaded, loaded_state = checkpoint
    assert loaded_state == state
    for name, array in arrays.items():
        assert np.array_equal(loaded[name], array)


@pytest.mark.parametrize("damage", [lambda data: data[:100], lambda data: b"rubbish"])
def test_a_damaged_checkpoint_is_refused_with_a_next_step(tmp_path, damage):
    folder = RunFolder(tmp_path)
    folder.save_checkpoint({"a": np.zeros(100)}, {})
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(RunFolderError, match="start over"):
        folder.load_checkpoint()


def test_rows_beyond_the_checkpoint_are_cut_even_if_the_last_is_half_written(tmp_path):
    folder = RunFolder(tmp_path)
    folder.append_progress([{"steps": 100, "success": 0.5}, {"steps": 200, "success": 0.6}])
    with open(tmp_path / "progress.csv", "a") as file:
        file.write("30")  # killed in the middle of 300
    folder.cut_progress("steps", 100)
    assert folder.read_progress() == [{"steps": "100", "success": "0.5"}]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    write_atomically(path, json.dumps({"version": 1}))

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, json.dumps({"version": 2}))
    assert json.loads(path.read_text()) == {"version": 1}


def test_a_full_disk_keeps_the_last_checkpoint_and_whole_rows(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with folder.claim(CONFIG, resume=False):
        folder.save_checkpoint({"weights": np.ones(10)}, {"step": 1})
        folder.append_progress([{"step": 1, "success": 0.5}])
        before = (tmp_path / "run" / "progress.csv").read_bytes()
        with files_limited_to(4096):
            with pytest.raises(NotWrittenError, match=r"checkpoint.*--resume"):
                folder.save_checkpoint({"weights": np.ones(100_000)}, {"step": 2})
            with pytest.raises(NotWrittenError, match="progress"):
                folder.append_progress([{"step": n, "success": 0.5} for n in range(2, 5000)])
        stored = folder.load_checkpoint()
    assert stored is not None
    arrays, state = stored
    assert state == {"step": 1}
    np.testing.assert_array_equal(arrays["weights"], np.ones(10))
    assert (tmp_path / "run" / "progress.csv").read_bytes() == before
    assert not list((tmp_path / "run").glob(".*.tmp")), "nothing half written stays"
