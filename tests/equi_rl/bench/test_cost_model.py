# SPDX-License-Identifier: MIT
"""The cost model against sums done by hand."""

from __future__ import annotations

import pytest

from equi_rl.bench.cost_model import (
    Parts,
    Work,
    best_players,
    players_at_the_learners_limit,
    run_s,
    sweep_s,
    work_of,
)
from equi_rl.training.presets import robot_run

PARTS = Parts(update_s=0.5, steps_per_s=100.0, round_s=0.1, start_s=5.0)


def test_a_run_bound_by_its_learner_does_not_gain_by_players():
    work = Work(0.0, 0.0, steps=1000.0, updates=1000.0, rounds=20.0, evaluation_steps=0.0)
    assert run_s(work, PARTS, 1) == pytest.approx(5.0 + 500.0)
    assert run_s(work, PARTS, 8) == pytest.approx(5.0 + 500.0)
    assert players_at_the_learners_limit(work, PARTS) == pytest.approx(1000 / (1000 * 100 * 0.5))


def test_a_run_bound_by_playing_gains_until_the_learner_is_the_limit():
    work = Work(0.0, 0.0, steps=40_000.0, updates=100.0, rounds=0.0, evaluation_steps=1000.0)
    assert run_s(work, PARTS, 1) == pytest.approx(5.0 + 400.0 + 10.0)
    assert run_s(work, PARTS, 4) == pytest.approx(5.0 + 102.5)
    assert players_at_the_learners_limit(work, PARTS) == pytest.approx(8.2)
    assert run_s(work, PARTS, 16) == pytest.approx(5.0 + 50.0)


def test_pretraining_is_played_and_learnt_one_after_the_other():
    work = Work(200.0, 30.0, steps=0.0, updates=0.0, rounds=0.0, evaluation_steps=0.0)
    assert run_s(work, PARTS, 1) == pytest.approx(5.0 + 2.0 + 15.0)


def test_a_sweep_takes_as_long_as_its_fullest_place():
    long, short = (Work(0, 0, 0, updates, 0, 0) for updates in (990.0, 190.0))  # 500 s and 100 s
    works, parts = [short, long, short, short], [PARTS] * 4
    assert sweep_s(works, parts, cores=2) == pytest.approx(800.0)
    assert sweep_s(works, parts, cores=4) == pytest.approx(500.0)
    assert sweep_s(works, parts, cores=256) == pytest.approx(500.0)
    assert best_players(works, parts, cores=4) == 1


def test_the_published_recipe_is_counted_from_its_settings():
    work = work_of(robot_run("block_picking", "paper"))
    assert work.pretraining_steps == 80 * 15 + 20 * 50
    assert work.pretraining_updates == work.pretraining_steps  # one per step
    assert work.steps == work.updates == 41_000 - work.pretraining_steps
    assert work.evaluation_steps == pytest.approx(4100)
    ship = work_of(robot_run("block_picking", "ship"))
    assert (ship.rounds, ship.updates, ship.steps) == (300, 12_000, 150_000)
    assert ship.evaluation_steps == pytest.approx(15 * 100 * 50)
