# SPDX-License-Identifier: MIT
"""`equi-bench env`: it runs, and its numbers mean what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from equi_rl.bench.env import run


def test_it_reports_steps_per_second_and_where_the_time_went(capsys):
    numbers: Any = run(["--episodes", "1", "--tasks", "block_picking"])
    assert (
        set(numbers["steps_per_s"]) == set(numbers["steps_per_s_with_resets"]) == {"block_picking"}
    )
    details = numbers["details"]["block_picking"]
    assert details["successes"] == 1
    # The parts of a step add up to the step.
    parts = ("inverse_kinematics_ms", "physics_ms", "rendering_ms", "rest_ms")
    assert sum(details[name] for name in parts) == pytest.approx(
        1e3 / details["steps_per_s"], rel=0.01
    )
    assert details["steps_per_s_with_resets"] < details["steps_per_s"]
    assert "block_picking" in capsys.readouterr().out
    json.dumps(numbers, allow_nan=False)


def test_an_impossible_number_of_episodes_is_refused(capsys):
    with pytest.raises(SystemExit):
        run(["--episodes", "0"])
    assert "at least 1" in capsys.readouterr().err
