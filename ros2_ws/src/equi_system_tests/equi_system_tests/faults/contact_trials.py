# SPDX-License-Identifier: MIT
"""`equi-contact`: full policy steps into something rigid, on a stiff arm; what it costs.

Each trial puts a block of steel somewhere in the workspace and commands steps of 50 mm towards it,
as the policy does, until contact is noticed: from above, from the side, from below, at any height
and from any distance. A protective stop is a failure. Force and lag are those of the emulated arm
itself.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from equi_control.driver.state import DriverState, FaultCode
from equi_control.driver.steps import Outcome
from equi_control.servo.config import ServoConfig
from equi_system_tests.faults.recording import travel_after
from equi_system_tests.faults.rig import SIM_LINK, Rig, RigError
from ur_emulator.profile import STRICT

STEP_M = 0.05
_MOST_STEPS = 3
# Half of the approaches lead down, as most of a policy's do.
_DIRECTIONS = [(0, 0, -1)] * 5 + [(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1)]
_BLOCK_M = 0.3
# Held back by this much the tool touches something; free motion is far below it.
_TOUCHED_M = 2e-4
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
    travel_mm: float
    """Way of the TCP from the first touch to standstill, back-off included."""
    standstill_s: float
    """Time from the first touch to standstill."""
    retreat_mm: float
    """How far the controller's target went back from where the tool first touched."""


def run_trial(
    rig: Rig, rng: np.random.Generator, towards: tuple[int, int, int] | None = None
) -> ContactTrial:
    """Approach one surface from a random place, to which the arm goes in steps from where it is.

    Args:
        rig: a robot in an episode, with nothing in its way.
        rng: of place, distance and direction.
        towards: the direction, if it is not to be random.
    """
    drawn = _DIRECTIONS[rng.integers(0, len(_DIRECTIONS))]
    direction = np.array(towards or drawn, dtype=np.float64)
    gap_m = float(rng.uniform(0.001, 0.045))
    box = rig.config.servo.limits.workspace
    # The whole way into the surface is inside the box, so that nothing but contact ends it.
    low_m, high_m = box.z_min_m + 0.01, box.z_max_m
    if direction[2] < 0:
        low_m += STEP_M + gap_m
    elif direction[2] > 0:
        high_m -= STEP_M + gap_m
    start = np.array([*rng.uniform((0.4, -0.1), (0.6, 0.1)), rng.uniform(low_m, high_m)])
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
    # The step has ended as soon as contact is noticed; the arm still backs off then.
    rig.wait_for_standstill()
    rows = rig.recorded()
    force_n, lag_mm, speed_mm_s, touched_s = _felt(rows)
    travel = travel_after(rows, touched_s)
    rig.emulator.api.request("clear_obstacles")
    stopped = rig.driver.fault is not None and rig.driver.fault.code is FaultCode.PROTECTIVE_STOP
    return ContactTrial(
        {-1: "down", 0: "sideways", 1: "up"}[round(direction[2])],
        float(surface_m[2]),
        gap_m * 1e3,
        noticed,
        stopped,
        force_n,
        lag_mm,
        speed_mm_s,
        travel.distance_mm,
        travel.standstill_s,
        _retreat_mm(rows, touched_s),
    )


def run_trials(
    count: int,
    seed: int = 1,
    profile: str = "strict",
    link: Mapping[str, float] = LAB_LINK,
    **servo: float,
) -> list[ContactTrial]:
    """Several approaches with one driver; after a protective stop, the operator resets it.

    Args:
        count: how many.
        seed: of the places and directions.
        profile: of the emulator.
        link: fields of LinkConfig that differ from the rig's, which are the simulated cell's.
        **servo: fields of ServoConfig that differ from its defaults.
    """
    rng = np.random.default_rng(seed)
    trials = []
    # A busy computer is no reason to stop here; contact is judged by the arm alone.
    settings = {"step_speed_m_s": ServoConfig.step_speed_m_s, **servo}
    with Rig.patient(profile=profile, link=dict(link), **settings) as rig:
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


def _retreat_mm(rows: NDArray[np.void], touched_s: float) -> float:
    """Way [mm] of the controller's target against the approach, from the place of the touch."""
    target_m, touch = rows["target_tcp"][:, :3], int(np.sum(rows["monotonic_s"] < touched_s))
    way_m = target_m[touch] - target_m[0]
    direction = way_m / max(float(np.linalg.norm(way_m)), 1e-9)
    ahead_m = (target_m[touch:] - rows["actual_tcp"][touch, :3]) @ direction
    return 1e3 * max(0.0, -float(ahead_m.min()))


def _felt(rows: NDArray[np.void]) -> tuple[float, float, float, float]:
    """Largest force [N], lag [mm], speed [mm/s] of a recording of the strict arm; first touch [s].

    The touch is on the monotonic clock; without one, the end of the recording.
    """
    target_m, actual_m = rows["target_tcp"][:, :3], rows["actual_tcp"][:, :3]
    lag_mm = 1e3 * float(np.linalg.norm(target_m - actual_m, axis=1).max())
    period_s = float(np.median(np.diff(rows["timestamp_s"])))
    share = 1.0 - np.exp(-period_s / STRICT.joint_lag_s)
    free_m, pressed_m = actual_m[0].copy(), np.zeros(len(rows))
    for row, (target, actual) in enumerate(zip(target_m, actual_m, strict=True)):
        free_m = free_m + share * (target - free_m)
        pressed_m[row] = np.linalg.norm(free_m - actual)
    speed = 1e3 * float(np.linalg.norm(rows["actual_speed"][:, :3], axis=1).max())
    touching = np.flatnonzero(pressed_m > _TOUCHED_M)
    touched_s = float(rows["monotonic_s"][touching[0] if len(touching) else -2])
    return STRICT.arm_stiffness_n_m * float(pressed_m.max()), lag_mm, speed, touched_s


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trials; the exit code is 0 only if every contact was noticed without a stop."""
    parser = argparse.ArgumentParser(
        prog="equi-contact",
        description=__doc__,
        epilog="Example: ros2 run equi_system_tests equi-contact --trials 100",
    )
    parser.add_argument("--trials", type=int, default=100, help="approaches (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--speed-m-s", type=float, help="drive all steps at this speed, to see why the limits exist"
    )
    parser.add_argument(
        "--cell",
        choices=("lab", "sim"),
        default="lab",
        help="whose smoothing of servoL is used (%(default)s): the simulated cell follows closer",
    )
    parsed = parser.parse_args(arguments)
    speeds = {}
    if parsed.speed_m_s is not None:
        speeds = dict.fromkeys(("step_speed_m_s", "near_surface_speed_m_s"), parsed.speed_m_s)
    link = LAB_LINK if parsed.cell == "lab" else SIM_LINK
    trials = run_trials(parsed.trials, parsed.seed, link=link, **speeds)
    Console(stderr=True).print(_table(trials))
    sys.stdout.write(json.dumps([dataclasses.asdict(trial) for trial in trials]) + "\n")
    return 0 if all(trial.noticed and not trial.protective_stop for trial in trials) else 1


def _table(trials: Sequence[ContactTrial]) -> Table:
    table = Table(title="steps of 50 mm into something rigid, strict emulator")
    for heading in (
        "approach",
        "trials",
        "noticed",
        "protective stops",
        "N",
        "lag mm",
        "mm/s",
        "back mm",
    ):
        table.add_column(heading)
    for direction in ("down", "sideways", "up"):
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
                f"{max(trial.retreat_mm for trial in chosen):.1f}",
            )
    return table


if __name__ == "__main__":
    sys.exit(main())
