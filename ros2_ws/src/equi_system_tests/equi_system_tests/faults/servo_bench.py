# SPDX-License-Identifier: MIT
"""`equi-bench servo`: the servo stream at the controller's rate, measured at the controller."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import sys
import time

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from equi_system_tests.faults.recording import gaps_longer_than, keeps_caps, stream_metrics
from equi_system_tests.faults.rig import Rig
from equi_system_tests.faults.scheduler_stalls import StallMonitor
from ur_emulator.constants import MODELS

MAX_GAP_PERIODS = 3
"""Longest pause in the stream that the design allows."""


def run(options: list[str]) -> dict[str, object]:
    """Stream random steps for a while and report what the emulated controller saw."""
    parsed = _parser().parse_args(options)
    console = Console(stderr=True)
    with (
        StallMonitor(1.0 / MODELS[parsed.model].rate_hz) as monitor,
        Rig(arm=parsed.arm, model=parsed.model) as rig,
        Progress(console=console) as progress,
    ):
        rig.take_over()
        rig.record()
        monitor.begin()
        task = progress.add_task("streaming", total=parsed.seconds)
        began_s = time.monotonic()
        step = 0
        while (elapsed_s := time.monotonic() - began_s) < parsed.seconds:
            progress.update(task, completed=elapsed_s)
            # A rose curve over the workspace: every direction, up and down, with rotations.
            angle = 2.4 * step
            rig.submit(
                (0.05 * math.cos(angle), 0.05 * math.sin(angle), 0.02 * math.cos(3.1 * angle)),
                yaw_rad=0.3 * math.sin(1.3 * angle),
            )
            step += 1
            rig.finish_step()
            if rig.driver.fault is not None:
                # A scheduler stall that was too long: what was measured until then counts.
                break
        stalls = monitor.finish()
        rows = rig.recorded()
        loop = rig.emulator.api.status()["loop"]
        servo = rig.servo_state
        period_s = servo.period_s
        metrics = stream_metrics(rows, period_s)
        gaps = gaps_longer_than(rows, MAX_GAP_PERIODS * period_s)
        # What is left of a gap while every processor was scheduled is the program's own.
        own = [gap for gap in gaps if stalls.running_s(gap) > MAX_GAP_PERIODS * period_s]
        limits = rig.config.servo.limits
    result: dict[str, object] = {
        **dataclasses.asdict(metrics),
        "seconds": elapsed_s,
        "ended_by_fault": "" if rig.driver.fault is None else rig.driver.fault.reason,
        "arm": parsed.arm,
        "controller_rate_hz": 1.0 / period_s,
        "steps": step,
        "speed_cap_m_s": limits.max_speed_m_s,
        "acceleration_cap_m_s2": limits.max_acceleration_m_s2,
        "caps_kept": keeps_caps(metrics, limits),
        "repeated_cycles": servo.repeated_cycles,
        "driver_worst_gap_ms": servo.worst_gap_s * 1e3,
        "emulator_lost_cycles": loop["lost_cycles"],
        "emulator_worst_late_ms": loop["worst_late_ms"],
        "gaps_over_3_periods": len(gaps),
        "gaps_over_3_periods_while_scheduled": len(own),
        "scheduler_worst_stall_ms": stalls.worst_ms,
        "scheduler_stalls_over_one_period": len(stalls.intervals_s),
        "stalls_measured_at_real_time_priority": stalls.real_time,
        "load_average": os.getloadavg()[0],
    }
    table = Table("metric", "value", title="servo stream, measured at the emulated controller")
    for name, value in result.items():
        table.add_row(name, f"{value:.4g}" if isinstance(value, float) else str(value))
    console.print(table)
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="equi-bench servo",
        description=__doc__,
        epilog="Example: equi-bench servo --seconds 60 --arm physics",
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--arm", choices=("kinematic", "physics"), default="physics")
    parser.add_argument("--model", choices=tuple(MODELS), default="ur5")
    return parser


if __name__ == "__main__":
    run(sys.argv[1:])
