# SPDX-License-Identifier: MIT
"""`equi-contact`: full policy steps into something rigid, on a stiff arm; what it costs.

Each trial puts a block of steel somewhere in the workspace and commands steps of 50 mm towards it,
as the policy does, until contact is noticed: from above, from the side, at any height below
`near_surface_height_m`, from any distance. A protective stop is a failure. Force and lag are those
of the emulated arm itself.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from equi_control.driver.state import DriverState, FaultCode
from equi_control.driver.steps import Outcome
from equi_system_tests.faults.rig import Rig, RigError
from ur_emulator.profile import STRICT

STEP_M = 0.05
_MOST_STEPS = 3
_BLOCK_M = 0.3
# The real cell's smoothing of servoL: softer, so the arm answers later (launch/cells/lab.yaml).
LAB_LINK = {"lookahead_s": 0.1, "gain": 300.0}


@dataclass(frozen=True)
class ContactTrial:
    """One approach, and what came of it."""

    direction: str
    surface_m: float
    """Height of the surface, or of the tool beside a wall [m]."""
    gap_mm: float
    """Distance at which the approach began."""
    noticed: bool
    """Whether the step ended as blocked."""
    protective_stop: bool
    largest_force_n: float
    largest_lag_mm: float
    """Of the measured TCP behind the controller's own target."""
    speed_mm_s: float
    """Fastest of the arm on its way."""


def run_trial(rig: Rig, rng: np.random.Generator) -> ContactTrial:
    """Approach one surface from a random place; the arm is at home before and after."""
    direction = np.array([(0, 0, -1), (1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0)])[
        rng.integers(0, 5) if rng.random() < 0.5 else 0
    ].astype(np.float64)
    gap_m = float(rng.uniform(0.001, 0.045))
    down = bool(direction[2])
    start = np.array([*rng.uniform((0.4, -0.1), (0.6, 0.1)), 0.0])
    # Everything that a task puts on the table is lower than this; above it the arm may be fast.
    highest_m = rig.config.servo.near_surface_height_m
    start[2] = rng.uniform(0.07, highest_m + gap_m) if down else rng.uniform(0.02, highest_m)
    _go_to(rig, start)
    surface_m = rig.measured_m() + gap_m * direction
    centre = surface_m + direction * _BLOCK_M / 2
    rig.emulator.api.request(
        "add_obstacle", centre_m=centre.tolist(), size_m=[_BLOCK_M, _BLOCK_M, _BLOCK_M]
    )
    rig.wait_for_standstill()
    rig.record()
    noticed = False
    for _ in range(_MOST_STEPS):
        x, y, z = (float(value) for value in STEP_M * direction)
        reports = rig.submit((x, y, z)) + rig.finish_step()
        noticed = any(
            report.outcome is Outcome.INTERRUPTED
            and any(reason.startswith("blocked") for reason in report.reasons)
            for report in reports
        )
        if noticed or rig.driver.fault is not None:
            break
    force_n, lag_mm, speed_mm_s = _felt(rig.recorded())
    rig.emulator.api.request("clear_obstacles")
    stopped = rig.driver.fault is not None and rig.driver.fault.code is FaultCode.PROTECTIVE_STOP
    return ContactTrial(
        "down" if down else "sideways",
        float(surface_m[2]),
        gap_m * 1e3,
        noticed,
        stopped,
        force_n,
        lag_mm,
        speed_mm_s,
    )


def run_trials(count: int, seed: int = 1, profile: str = "strict") -> list[ContactTrial]:
    """Several approaches with one driver; after a protective stop, the operator resets it."""
    rng = np.random.default_rng(seed)
    trials = []
    # A busy computer is no reason to stop here; contact is judged by the arm alone.
    with Rig.patient(profile=profile, link=LAB_LINK) as rig:
        rig.take_over()
        for number in range(count):
            rig.begin_episode(f"trial {number}")
            trials.append(run_trial(rig, rng))
            if rig.driver.fault is not None:
                _recover(rig)
            rig.driver.go_home()
            rig.until(lambda: not rig.driver.homing, "home")
    return trials


def _go_to(rig: Rig, target_m: NDArray[np.float64]) -> None:
    """Go there in steps, through free space."""
    for _ in range(20):
        away = target_m - rig.servo_state.commanded[:3]
        if float(np.linalg.norm(away)) < 1e-6:
            return
        x, y, z = (float(value) for value in np.clip(away, -STEP_M, STEP_M))
        rig.submit((x, y, z))
        rig.finish_step()
        if rig.driver.fault is not None:
            raise RigError(f"the arm stopped in free space: {rig.driver.fault.reason}")
    raise RigError(f"the arm never came to {target_m.tolist()}")


def _recover(rig: Rig) -> None:
    rig.recover_robot()
    rig.reset_fault()
    rig.driver.activate()
    rig.until(lambda: rig.driver.state is DriverState.HOLD, "the driver holds the arm again")


def _felt(rows: NDArray[np.void]) -> tuple[float, float, float]:
    """Largest force [N], lag [mm] and speed [mm/s] of a recording of the strict arm."""
    target_m, actual_m = rows["target_tcp"][:, :3], rows["actual_tcp"][:, :3]
    lag_mm = 1e3 * float(np.linalg.norm(target_m - actual_m, axis=1).max())
    period_s = float(np.median(np.diff(rows["timestamp_s"])))
    share = 1.0 - np.exp(-period_s / STRICT.joint_lag_s)
    free_m, pressed_m = actual_m[0].copy(), 0.0
    for target, actual in zip(target_m, actual_m, strict=True):
        free_m = free_m + share * (target - free_m)
        pressed_m = max(pressed_m, float(np.linalg.norm(free_m - actual)))
    speed = 1e3 * float(np.linalg.norm(rows["actual_speed"][:, :3], axis=1).max())
    return STRICT.arm_stiffness_n_m * pressed_m, lag_mm, speed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trials; the exit code is 0 only if every contact was noticed without a stop."""
    parser = argparse.ArgumentParser(
        prog="equi-contact",
        description=__doc__,
        epilog="Example: ros2 run equi_system_tests equi-contact --trials 100",
    )
    parser.add_argument("--trials", type=int, default=100, help="approaches (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parsed = parser.parse_args(arguments)
    trials = run_trials(parsed.trials, parsed.seed)
    Console(stderr=True).print(_table(trials))
    sys.stdout.write(json.dumps([dataclasses.asdict(trial) for trial in trials]) + "\n")
    return 0 if all(trial.noticed and not trial.protective_stop for trial in trials) else 1


def _table(trials: Sequence[ContactTrial]) -> Table:
    table = Table(title="steps of 50 mm into something rigid, strict emulator")
    for heading in ("approach", "trials", "noticed", "protective stops", "N", "lag mm", "mm/s"):
        table.add_column(heading)
    for direction in ("down", "sideways"):
        chosen = [trial for trial in trials if trial.direction == direction]
        if chosen:
            table.add_row(
                direction,
                str(len(chosen)),
                str(sum(trial.noticed for trial in chosen)),
                str(sum(trial.protective_stop for trial in chosen)),
                f"{max(trial.largest_force_n for trial in chosen):.0f}",
                f"{max(trial.largest_lag_mm for trial in chosen):.1f}",
                f"{max(trial.speed_mm_s for trial in chosen):.0f}",
            )
    return table


if __name__ == "__main__":
    sys.exit(main())
