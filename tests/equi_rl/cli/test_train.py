# SPDX-License-Identifier: MIT
"""Specification of equi-train: short runs, refusals, and a process killed without warning."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from equi_rl.carflag.run import TUNED_A2C, CarFlagRun, RunConfigError
from equi_rl.carflag.trainer import CarFlagTrainer, Progress
from equi_rl.carflag.worlds import CarFlagError
from equi_rl.cli.train import main
from equi_rl.data.episode import ReplayError
from equi_rl.nets.checkpoint import CheckpointError
from equi_rl.training import trainer as trainer_module
from equi_rl.training.run_folder import RunFolder

TINY = ["--a2c.envs", "2", "--a2c.rollout-steps", "5", "--evaluation-episodes", "3"]


def tiny(domain, folder, *more):
    return [
        *("carflag", "--domain", domain, "--folder", str(folder), "--seeds", "0", "5"),
        *("--steps", "100", "--evaluate-every", "40", *TINY, *more),
    ]


@pytest.mark.parametrize("domain", ["carflag-1d", "carflag-2d"])
@pytest.mark.parametrize("agent", ["equi-ra2c", "ra2c", "dpfrl"])
def test_a_hundred_steps_leave_a_complete_run_folder(domain, agent, tmp_path, capsys):
    assert main(tiny(domain, tmp_path, "--agent", agent)) == 0
    summary = json.loads(capsys.readouterr().out)
    folder = RunFolder(tmp_path)
    assert folder.read_summary() == summary
    assert summary["steps"] == 100
    rows = folder.read_progress()
    assert [(r["seed"], r["steps"]) for r in rows] == [
        (seed, steps) for steps in ("40", "80", "100") for seed in ("0", "5")
    ]
    assert list((tmp_path / "tensorboard").rglob("events.*"))


@pytest.mark.parametrize("domain", ["carflag-1d", "carflag-2d"])
def test_what_is_not_said_about_learning_is_as_tuned_for_the_domain(domain, tmp_path, capsys):
    tuned = TUNED_A2C[domain]
    assert CarFlagRun(domain).a2c == tuned
    main(tiny(domain, tmp_path, "--a2c.discount", "0.5"))
    said = {"envs": 2, "rollout_steps": 5, "discount": 0.5}
    stored = RunFolder(tmp_path).read_config()["config"]["a2c"]
    assert stored == {**dataclasses.asdict(tuned), **said}


def test_the_help_shows_the_hyper_parameters_of_the_domain(capsys):
    with pytest.raises(SystemExit):
        main(["carflag", "--domain", "carflag-2d", "--help"])
    words = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "c_e (default: 0.05)" in words


def test_a_finished_run_is_not_trained_again(tmp_path, capsys):
    main(tiny("carflag-1d", tmp_path))
    before = capsys.readouterr().out
    assert main(tiny("carflag-1d", tmp_path, "--resume")) == 0
    assert capsys.readouterr().out == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--offset", "30"], "offset = 30"),
        (["--a2c.discount", "2"], "discount = 2"),
        (["--steps", "0"], "steps = 0"),
        (["--seeds", "1", "1"], "seeds = "),
    ],
)
def test_impossible_settings_end_with_a_message_and_status_two(more, message, tmp_path, capsys):
    status: object
    try:
        status = main(tiny("carflag-1d", tmp_path, *more))
    except SystemExit as ending:  # settings that the option parser itself finds impossible
        status = ending.code
    assert status == 2
    error = " ".join(capsys.readouterr().err.split())
    assert message in error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_folder_that_cannot_be_made_ends_with_one_sentence(below, tmp_path, capsys):
    (tmp_path / "file").write_text("no folder")
    folder = tmp_path / "file" / below
    assert (
        main(["carflag", "--domain", "carflag-1d", "--steps", "100", "--folder", str(folder)]) == 2
    )
    error = " ".join(capsys.readouterr().err.split())
    assert "cannot be written" in error
    assert "choose another --folder" in error
    assert (tmp_path / "file").read_text() == "no folder"


@pytest.mark.parametrize("option", [("--domain", "carflag-3d"), ("--agent", "ppo")])
def test_an_unknown_domain_or_agent_names_the_known_ones(option, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(tiny("carflag-1d", tmp_path, *option))
    error = capsys.readouterr().err
    assert "carflag-2d" in error or "equi-ra2c" in error
    with pytest.raises(RunConfigError, match="choose"):
        CarFlagRun(**{"domain": "carflag-1d", option[0][2:]: option[1]})


def test_a_folder_of_another_run_is_refused_naming_the_field(tmp_path, capsys):
    main(tiny("carflag-1d", tmp_path))
    assert main(tiny("carflag-1d", tmp_path, "--offset", "3", "--resume")) == 2
    assert "offset = 0 there, 3 here" in " ".join(capsys.readouterr().err.split())


def test_help_shows_a_command_that_can_be_copied(capsys):
    with pytest.raises(SystemExit) as ending:
        main(["--help"])
    assert ending.value.code == 0
    assert "equi-train carflag --domain carflag-1d" in capsys.readouterr().out


def test_a_run_survives_its_journey_through_arguments_and_json(tmp_path):
    run = CarFlagRun("carflag-2d", "ra2c", size=11, offset=-2, seeds=(4, 9), steps=123_456)
    assert CarFlagRun.from_json(json.loads(json.dumps(run.to_json()))) == run
    # and equi-train understands the arguments: it refuses only the folder, which is another run's
    with RunFolder(tmp_path).claim({"domain": "other"}, resume=False):
        pass
    assert main([*run.arguments(), "--folder", str(tmp_path), "--resume"]) == 2


def test_an_impossible_world_cannot_even_be_configured():
    with pytest.raises(CarFlagError, match="off the grid"):
        CarFlagRun("carflag-2d", offset=4)


def final_arrays(folder):
    checkpoint = RunFolder(folder).load_checkpoint()
    assert checkpoint is not None
    arrays, state = checkpoint
    return arrays, {key: value for key, value in state.items() if "seconds" not in key}


@pytest.mark.parametrize(
    "domain", ["carflag-1d", pytest.param("carflag-2d", marks=pytest.mark.slow)]
)
def test_a_process_killed_without_warning_continues_to_the_same_bits(domain, tmp_path):
    # Given a run that nobody disturbs
    settings = [
        *("--a2c.envs", "4", "--a2c.rollout-steps", "10", "--evaluation-episodes", "3"),
        *("--seeds", "2", "3", "--steps", "8000", "--evaluate-every", "400"),
    ]
    arguments = ["carflag", "--domain", domain, *settings]
    assert main([*arguments, "--folder", str(tmp_path / "calm")]) == 0
    # When the same run is killed (SIGKILL) after some checkpoint, and resumed
    command = [sys.executable, "-m", "equi_rl.cli.train", *arguments]
    command += ["--folder", str(tmp_path / "killed")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)
    folder = RunFolder(tmp_path / "killed")
    try:
        deadline = time.monotonic() + 600
        while len(folder.read_progress()) < 6 and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not folder.is_finished, "the run ended before it could be killed; make it longer"
    assert main([*arguments, "--folder", str(tmp_path / "killed"), "--resume"]) == 0
    # Then weights, optimiser, worlds, random generators and curves are the same to the bit
    calm, calm_state = final_arrays(tmp_path / "calm")
    killed, killed_state = final_arrays(tmp_path / "killed")
    assert calm_state == killed_state
    for name, array in calm.items():
        assert np.array_equal(array, killed[name]), name
    for one, two in zip(
        RunFolder(tmp_path / "calm").read_progress(), folder.read_progress(), strict=True
    ):
        assert {**one, "seconds": ""} == {**two, "seconds": ""}


def test_a_resumed_run_keeps_the_scalars_of_its_last_checkpoint(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    class Killed(Exception):
        pass

    def killed_at_the_second_evaluation(progress):
        if progress.steps >= 1600:
            raise Killed

    run = CarFlagRun("carflag-1d", seeds=(3,), steps=2400, evaluate_every=800)
    with pytest.raises(Killed):
        CarFlagTrainer(run, tmp_path).train(report=killed_at_the_second_evaluation)
    CarFlagTrainer(run, tmp_path).train(resume=True)
    events = EventAccumulator(str(tmp_path / "tensorboard" / "seed3")).Reload()
    assert [event.step for event in events.Scalars("success")] == [800, 1600, 2400]


def test_a_trained_policy_can_be_watched_in_the_gymnasium_environment(tmp_path, capsys):
    from PIL import Image, ImageSequence

    from equi_rl.carflag.video import main as record

    assert record(["--run", str(tmp_path), "--out", str(tmp_path / "episode.gif")]) == 2
    main(tiny("carflag-2d", tmp_path / "run"))
    arguments = ["--run", str(tmp_path / "run"), "--out", str(tmp_path / "episode.gif")]
    assert record([*arguments, "--episodes", "1", "--learner", "1"]) == 0
    with Image.open(tmp_path / "episode.gif") as gif:
        assert sum(1 for _ in ImageSequence.Iterator(gif)) > 1
    assert record([*arguments, "--learner", "2"]) == 2
    playable = ["--run", str(tmp_path / "run"), "--out", str(tmp_path / "episode.mp4")]
    assert record([*playable, "--episodes", "1"]) == 0
    assert (tmp_path / "episode.mp4").stat().st_size > 1000


def test_progress_is_reported_with_success_and_speed(tmp_path):
    run = CarFlagRun("carflag-1d", seeds=(0,), steps=3000, evaluate_every=800)
    reports: list[Progress] = []
    CarFlagTrainer(run, tmp_path).train(report=reports.append)
    assert reports[-1].steps == 3200
    assert 0 <= reports[-1].success <= 1
    assert reports[-1].steps_per_s > 0


def test_a_robot_run_is_shown_in_rounds(tmp_path, monkeypatch, caplog):
    def train(self, *, resume, report):
        report(trainer_module.Progress(rounds=3, environment_steps=40, seconds=2.0), {})
        return {}

    monkeypatch.setattr(trainer_module.RobotTrainer, "train", train)
    arguments = ["robot", "--task", "block_picking", "--rounds", "4", "--folder", str(tmp_path)]
    with caplog.at_level("INFO"):
        assert main(arguments) == 0
    assert "3 of 4 rounds" in caplog.text
    assert "20 steps/s" in caplog.text


def test_a_robot_run_with_a_budget_is_shown_in_steps(tmp_path, monkeypatch, caplog):
    def train(self, *, resume, report):
        report(trainer_module.Progress(rounds=3, environment_steps=40_500, seconds=2.0), {})
        return {}

    monkeypatch.setattr(trainer_module.RobotTrainer, "train", train)
    arguments = ["robot", "--task", "block_pushing", "--preset", "paper", "--folder", str(tmp_path)]
    with caplog.at_level("INFO"):
        assert main(arguments) == 0
    assert "40500 of 81000 steps" in caplog.text.replace(",", "")


@pytest.mark.parametrize("error", [CheckpointError, ReplayError])
def test_a_damaged_run_ends_with_a_message_and_status_two(error, tmp_path, monkeypatch, capsys):
    def train(self, *, resume, report):
        raise error("this file is damaged")

    monkeypatch.setattr(trainer_module.RobotTrainer, "train", train)
    assert main(["robot", "--task", "block_picking", "--folder", str(tmp_path)]) == 2
    assert "this file is damaged" in capsys.readouterr().err
