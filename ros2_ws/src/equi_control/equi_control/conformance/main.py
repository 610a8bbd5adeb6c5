# SPDX-License-Identifier: MIT
"""`equi-conformance`: a slow, supervised sequence that measures how one robot behaves.

Nothing moves before it is confirmed at the keyboard. The result is a file that the emulator loads
(`ur-emulator --conformance-file FILE`), so that it behaves like this robot. At any anomaly the arm
is stopped, what was measured so far is kept, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from equi_control.conformance.gripper_timing import measure_gripper
from equi_control.conformance.measurements import (
    measure_force,
    measure_jitter,
    measure_slider,
    measure_start,
    measure_tracking,
)
from equi_control.conformance.operator import Aborted, Operator, PersonAtTheRobot, Rehearsal
from equi_control.conformance.plan import LONGEST_TRAVEL_RAD, Step, reach_m, sequence
from equi_control.conformance.preconditions import identify, problems
from equi_control.conformance.record import ConformanceRecord, RecordError, default_path
from equi_control.conformance.stops import (
    measure_closed_connection,
    measure_protective_stop,
    measure_stops,
)
from equi_control.rtde.config import LinkError
from equi_control.rtde.dashboard import Dashboard, DashboardError
from equi_control.rtde.measurement_link import MeasurementLink
from equi_core.motion.realtime import raise_priority

_PRIORITY = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point: 0 done, 1 aborted or refused, 2 wrong arguments."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    steps = sequence(
        with_gripper=not options.no_gripper, with_protective_stop=not options.no_protective_stop
    )
    if options.dry_run:
        _list_steps(steps, options.model)
        return 0
    if not options.robot_ip:
        sys.stderr.write("equi-conformance: --robot-ip is missing; --dry-run needs none\n")
        return 2
    record: ConformanceRecord | None = None
    try:
        operator: Operator = Rehearsal(options.robot_ip) if options.rehearse else PersonAtTheRobot()
        with Dashboard(options.robot_ip) as dashboard, MeasurementLink(options.robot_ip) as link:
            record = _prepare(options, dashboard, link)
            reach = reach_m(record.content["robot"]["model"], link.tcp_radius_m())
            operator.state_clearance(LONGEST_TRAVEL_RAD * reach)
            raise_priority(_PRIORITY)
            for step in steps:
                if not operator.confirm(step, step.bounds(reach)):
                    record.note(step.key, skipped=True)
                    continue
                _run(step, link, dashboard, record)
                link.stop()
    except (Aborted, LinkError, DashboardError, RecordError) as error:
        return _aborted(str(error), record)
    except KeyboardInterrupt:
        return _aborted("interrupted at the keyboard", record)
    except RuntimeError as error:  # ur_rtde's own errors
        return _aborted(f"ur_rtde: {error}", record)
    sys.stdout.write(f"\nDone: {record.path}\n")
    return 0


def _prepare(
    options: argparse.Namespace, dashboard: Dashboard, link: MeasurementLink
) -> ConformanceRecord:
    """Find out which robot this is and whether it is ready; begins the file."""
    identity = identify(dashboard, model=options.model, serial=options.serial)
    found = problems(dashboard, identity, link.next_sample(link.sample()))
    if found:
        raise Aborted("the robot is not ready:\n  - " + "\n  - ".join(found))
    robot = identity.as_robot(options.name)
    path = options.output or default_path(Path("runs/conformance"), robot)
    sys.stdout.write(
        f"{robot['model']}, serial number {robot['serial_number']}, {robot['software']}\n"
        f"Writing to {path}\n"
    )
    return ConformanceRecord(path, robot)


def _run(
    step: Step, link: MeasurementLink, dashboard: Dashboard, record: ConformanceRecord
) -> None:
    """Carry out one confirmed step and store what it found."""
    record.note(step.key, began=True)
    if step.key == "jitter":
        record.add("jitter", measure_jitter(link))
    elif step.key == "force":
        record.add("force", measure_force(link))
    elif step.key == "gripper":
        record.add("gripper", measure_gripper(link.host))
    elif step.key == "start":
        record.add("script_start_s", measure_start(link))
    elif step.key == "tracking":
        record.add("tracking", measure_tracking(link))
    elif step.key == "slider":
        record.add("slider", measure_slider(link))
    elif step.key == "connection_closed":
        record.add("stops", measure_closed_connection(link))
    elif step.key == "protective_stop":
        stops, unlock_s = measure_protective_stop(link, dashboard)
        record.add("stops", stops)
        record.add("unlock_delay_s", unlock_s)
    else:
        record.add("stops", measure_stops(link, dashboard, step.key))


def _aborted(why: str, record: ConformanceRecord | None) -> int:
    """The link has stopped the arm on its way out; say why, and where the data are."""
    sys.stderr.write(f"\nequi-conformance: stopped. {why}\n")
    if record is not None:
        try:
            record.note("aborted", why=why)
        except RecordError as error:
            sys.stderr.write(f"{error}\n")
        sys.stderr.write(f"What was measured before is in {record.path}\n")
    return 1


def _list_steps(steps: Sequence[Step], model: str) -> None:
    reach = reach_m(model)
    sys.stdout.write(
        "Dry run: nothing is connected and nothing moves. Every step waits for its confirmation.\n"
    )
    for number, step in enumerate(steps, 1):
        sys.stdout.write(f"{number}. {step.title}: {step.does}\n     {step.bounds(reach)}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="equi-conformance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example: equi-conformance --dry-run; equi-conformance --robot-ip 192.168.1.10 "
        '--name "UR5 in lab 3"',
    )
    parser.add_argument("--robot-ip", default="", help="address of the UR controller or of URSim")
    parser.add_argument(
        "--dry-run", action="store_true", help="list every step with its largest speed and travel"
    )
    parser.add_argument("--name", default="", help="name of this robot in your lab")
    parser.add_argument(
        "--model", default="", help="ur3, ur5, ur10, ur3e, ur5e or ur10e, if it cannot say"
    )
    parser.add_argument("--serial", default="", help="serial number, if it cannot say")
    parser.add_argument(
        "--output", type=Path, help="file to write; default: runs/conformance/<robot>-<time>.json"
    )
    parser.add_argument("--no-gripper", action="store_true", help="leave out the gripper")
    parser.add_argument(
        "--no-protective-stop", action="store_true", help="leave out the protective stop"
    )
    parser.add_argument(
        "--rehearse",
        action="store_true",
        help="confirm every step automatically; only for an emulator on this computer",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
