# SPDX-License-Identifier: MIT
"""Specification of the flags of `equi-train robot`: presets, overrides in any order, refusals."""

from __future__ import annotations

import itertools

import pytest

from equi_rl.agents.sac_settings import Encoder
from equi_rl.cli.train import RobotCommand, main, parse
from equi_rl.results.robot_experiments import (
    ABLATIONS,
    ablations,
    comparison,
    learning_rates,
    reward_runs,
)
from equi_rl.training.config import Preset, RobotConfigError, RobotRun
from equi_rl.training.presets import robot_run
from equi_rl.training.renames import flatten

NEEDED = ("--task", "block_picking", "--folder", "runs/x")


def run_of(*flags: str) -> RobotRun:
    command = parse(["robot", *NEEDED, *flags])
    assert isinstance(command, RobotCommand)
    return command.run


@pytest.mark.parametrize("preset", list(Preset))
def test_a_preset_gives_every_value_that_no_flag_names(preset):
    assert run_of("--preset", preset.value) == robot_run("block_picking", preset)


def test_without_a_preset_a_run_is_one_that_can_be_shipped():
    assert run_of() == robot_run("block_picking", Preset.SHIP)


def test_flags_override_the_preset_wherever_they_stand():
    flags = [
        ("--preset", "paper"),
        ("--sac.tau", "0.01"),
        ("--rounds", "600"),
        ("--sac.discount", "0.8"),
    ]
    wanted = robot_run(
        "block_picking",
        "paper",
        sac={"tau": 0.01, "discount": 0.8},
        rounds=600,
    )
    for order in itertools.permutations(flags):
        assert run_of(*itertools.chain(*order)) == wanted


def test_settings_that_only_fit_together_may_come_in_either_order():
    encoder, critic = ("--sac.encoder", "both"), ("--sac.actor-uses-updated-critic", "False")
    one, two = run_of(*encoder, *critic), run_of(*critic, *encoder)
    assert one == two
    assert one.sac.encoder is Encoder.BOTH
    assert not one.sac.actor_uses_updated_critic


@pytest.mark.parametrize(("text", "number"), [("1e-4", 1e-4), ("2.5E-3", 2.5e-3), ("3", 3.0)])
def test_numbers_may_be_written_in_any_common_way(text, number):
    assert run_of("--sac.actor-learning-rate", text).sac.actor_learning_rate == number


def test_a_setting_can_be_switched_off_with_none():
    assert run_of("--preset", "reward").imitation.log_std == -2.0
    assert run_of("--preset", "reward", "--imitation.log-std", "None").imitation.log_std is None


def test_an_agent_of_two_kinds_of_networks_gets_two_encoders():
    shared = ("--sac.encoder", "both", "--sac.actor-uses-updated-critic", "False")
    assert run_of("--preset", "paper", *shared).sac.encoder is Encoder.BOTH
    with pytest.raises(RobotConfigError, match=r"sac.encoder is 'both'.*separate for equi-actor"):
        run_of("--preset", "paper", "--agent", "equi-actor-rsac", *shared)


def test_learning_from_reward_is_compared_with_runs_that_differ_in_one_setting():
    runs = dict(reward_runs())
    assert len(runs) == 16
    for name, arguments in runs.items():
        command = parse([*arguments, "--folder", "runs/x"])
        assert isinstance(command, RobotCommand)
        task, _, variant, seed = name.split("/")
        usual = robot_run(task, "reward", seed=int(seed.removeprefix("seed-")))
        found, wanted = flatten(command.run.to_mapping()), flatten(usual.to_mapping())
        differing = {key for key in wanted if found[key] != wanted[key]}
        assert (
            differing
            == {
                "as_it_is": set(),
                "own_successes": {"asymmetric.teacher"},
                "zero_reward": {"asymmetric.reward_scale"},
            }[variant]
        )


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_every_ablation_changes_the_run(ablation):
    assert run_of("--preset", "reward", *ABLATIONS[ablation]) != run_of("--preset", "reward")


@pytest.mark.parametrize(
    ("sweep", "count"),
    [(reward_runs, 16), (learning_rates, 30), (comparison, 48), (ablations, 22)],
)
def test_every_run_of_a_sweep_is_accepted_and_has_a_name_of_its_own(sweep, count):
    runs = sweep()
    assert len({name for name, _ in runs}) == len(runs) == count
    for _, arguments in runs:
        parse([*arguments, "--folder", "runs/x"])


def test_the_help_shows_the_meaning_and_the_presets_default_of_every_setting(capsys):
    with pytest.raises(SystemExit) as ending:
        parse(["robot", "--preset", "reward", "--help"])
    assert ending.value.code == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "--sac.tau FLOAT Polyak coefficient" in text
    assert "--imitation.updates INT" in text
    settings = robot_run("block_picking", "reward").to_mapping()
    for flag in (f"--{name}" for name in flatten(settings)):
        assert f"{flag.replace('_', '-')} " in text, flag
    assert "(default: 0.15)" in text  # noise of the preset reward
    assert "(default: 2000)" in text  # updates of imitation


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        (("--task", "juggling"), ("task is 'juggling'", "block_pushing")),
        (("--agent", "ppo"), ("agent is 'ppo'", "equi-rsac")),
        (("--preset", "slow"), ("preset is 'slow'", "paper, reward, brief, deploy, ship")),
        (("--seed", "400"), ("seed is 400", "between 0 and 399")),
        (("--batch-episodes", "0"), ("batch_episodes is 0", "at least 1")),
        (("--group", "C5"), ("network.group = 'C5'", "C4, C8")),
        (("--sac.tau", "3"), ("sac.tau is 3.0", "between 0 and 1")),
        (("--sac.discount", "5"), ("sac.discount is 5.0", "between 0 and 1")),
        (("--sac.discount", "-1"), ("sac.discount is -1.0", "between 0 and 1")),
        (("--sac.tau", "high"), ("--sac.tau", "'high'", "FLOAT")),
        (("--sac.encoder", "none"), ("--sac.encoder", "none", "separate", "critic")),
        (("--sac.encoder", "both"), ("actor_uses_updated_critic is True", "must be False")),
        (("--sac.hope", "1"), ("--sac.hope", "Unrecognized")),
        (("--rounds", "1.5"), ("--rounds", "1.5", "INT")),
        (("--imitation.policy-ema", "0"), ("imitation.policy_ema is 0.0", "(0, 1]")),
        (("--set", "seed=1"), ("--set", "Unrecognized")),
    ],
)
def test_a_bad_value_ends_with_thing_value_and_what_is_allowed(flags, parts, tmp_path, capsys):
    folder = tmp_path / "run"
    status: object
    try:
        status = main(["robot", "--task", "block_picking", "--folder", str(folder), *flags])
    except SystemExit as ending:  # values that the option parser itself refuses
        status = ending.code
    assert status == 2
    error = " ".join(capsys.readouterr().err.replace("│", " ").split())
    for part in parts:
        assert part in error
    assert not folder.exists()


def test_a_run_needs_a_task(tmp_path, capsys):
    with pytest.raises(SystemExit) as ending:
        main(["robot", "--preset", "reward", "--folder", str(tmp_path / "run")])
    assert ending.value.code == 2
    assert "--task" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
