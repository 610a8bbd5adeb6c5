# SPDX-License-Identifier: MIT
"""`equi-doctor`: looks at robot, gripper, cameras, calibration and computer; one line each.

Nothing moves and nothing is written. Every line that is not ok says what to do. Exit code 0:
nothing fails (warnings may stand); 1: something fails; 2: wrong arguments.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from equi_control.doctor import controller, network
from equi_control.doctor.calibration import check_calibration, check_serials
from equi_control.doctor.cameras import CameraLimits, check_cameras
from equi_control.doctor.finding import Finding, Verdict, exit_code, fail, ok, skipped
from equi_control.doctor.gripper import check_gripper
from equi_control.doctor.host import check_priority, check_shared_memory
from equi_control.parameters import read_config
from equi_control.rtde.config import LinkError
from equi_control.rtde.dashboard import Dashboard, DashboardError
from equi_control.rtde.rtde_session import RtdeSession
from equi_control.servo.config import ServoConfig
from equi_core.cell_file import CellFile, CellFileError
from equi_core.locations.find import NotFoundError, find_calibration, find_cell_file

_LISTEN_RTDE_S = 1.0
_LISTEN_CAMERAS_S = 3.0
_DASHBOARD_CHECKS = ("round trip", "PolyScope", "robot model", "remote control")
_RTDE_CHECKS = (
    *("RTDE stream", "RTDE version", "safety mode", "robot mode", "speed slider", "TCP"),
    *("payload", "kinematics", "registers", "wrist winding"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    options = _parser().parse_args(arguments)
    try:
        cell = CellFile.load(find_cell_file(options.cell))
        parameters = cell.parameters("rtde_driver")
        if options.robot_ip:
            parameters["robot_ip"] = options.robot_ip
        config, _ = read_config(lambda name, default, info: parameters.get(name, default))
    except (CellFileError, NotFoundError, LinkError, ValueError) as error:
        sys.stderr.write(f"equi-doctor: {error}\n")
        return 2
    host = config.servo.link.host
    problem = network.address_problem(host)
    if problem:
        sys.stderr.write(f"equi-doctor: {problem}\n")
        return 2
    sys.stdout.write(f"equi-doctor: cell {cell.name}, robot {host}; nothing will move\n")
    findings: list[Finding] = []
    for finding in _findings(options, cell, config.servo, config.use_gripper):
        findings.append(finding)
        sys.stdout.write(f"{finding}\n")
        sys.stdout.flush()
    counts = {verdict: sum(one.verdict is verdict for one in findings) for verdict in Verdict}
    sys.stdout.write(
        ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items()) + "\n"
    )
    return exit_code(findings)


def _findings(
    options: argparse.Namespace, cell: CellFile, servo: ServoConfig, with_gripper: bool
) -> Iterator[Finding]:
    host = servo.link.host
    yield from robot_findings(servo)
    if with_gripper:
        yield check_gripper(host)
    else:
        yield skipped("gripper", "use_gripper is false in the cell file")
    folder = Path(options.calibration) if options.calibration else find_calibration(cell.name)
    verdict, calibration = check_calibration(folder, cell)
    yield verdict
    yield check_serials(cell, calibration)
    if options.no_cameras:
        yield skipped("camera rate", "left out by --no-cameras")
    else:
        yield from _camera_findings(cell, options.namespace)
    yield check_priority()
    yield check_shared_memory()


def robot_findings(servo: ServoConfig, listen_s: float = _LISTEN_RTDE_S) -> Iterator[Finding]:
    """Every line about the controller; a port that does not answer skips what needs it."""
    host = servo.link.host
    try:
        with RtdeSession(host) as session:
            version = session.controller_version()
            samples = session.read(controller.OUTPUTS, listen_s)
            values = samples[-1].values if samples else {}
            yield ok("RTDE", f"answers at {host}")
            yield network.check_stream(samples)
            yield controller.check_rtde_version(version)
            if values:
                yield controller.check_safety_mode(values)
                yield controller.check_robot_mode(values)
                yield controller.check_slider(values)
                yield controller.check_tcp(values, servo)
                yield controller.check_payload(values, servo)
                yield controller.check_kinematics(values, servo)
                yield controller.check_winding(values, servo)
        # A session of its own: the registers are given back at once.
        with RtdeSession(host) as session:
            yield controller.check_registers(session)
    except LinkError as error:
        yield fail("RTDE", str(error), f"can you reach it? ping {host}; is a firewall between you?")
        for check in _RTDE_CHECKS:
            yield skipped(check, "RTDE does not answer")
        version = (0, 0, 0, 0)
    try:
        with Dashboard(host) as dashboard:
            yield ok("dashboard", f"answers at {host}")
            yield network.check_round_trip(dashboard)
            yield controller.check_polyscope(dashboard, version)
            yield controller.check_model(dashboard, version[0], servo.link.robot_model)
            yield controller.check_remote_control(dashboard, version[0])
    except DashboardError as error:
        yield fail(
            "dashboard", str(error), "enable the dashboard server (Settings, Security, Services)"
        )
        for check in _DASHBOARD_CHECKS:
            yield skipped(check, "the dashboard does not answer")


def _camera_findings(cell: CellFile, namespace: str) -> list[Finding]:
    try:
        listen = _cloud_listener()
    except ImportError as error:
        return [
            fail(
                "camera rate",
                f"ROS cannot be used here ({error})",
                "source env.sh (or ROS's setup.bash), or leave the cameras out: --no-cameras",
            )
        ]
    fusion = cell.parameters("depth_fusion")
    limits = CameraLimits(
        max_age_s=float(fusion.get("max_cloud_age_s", 0.4)),
        max_skew_s=float(fusion.get("max_skew_s", 0.15)),
    )
    topics = {name: camera.topic for name, camera in cell.cameras.items()}
    arrivals = listen(topics, _LISTEN_CAMERAS_S, namespace)
    return check_cameras(arrivals, _LISTEN_CAMERAS_S, limits)


def _cloud_listener() -> Callable[..., dict[str, list]]:  # type: ignore[type-arg]
    from equi_control.doctor.ros_clouds import listen  # the rest of the doctor needs no ROS

    return listen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="equi-doctor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Example: equi-doctor --robot-ip 192.168.1.10 --cell lab",
    )
    parser.add_argument(
        "--robot-ip", default="", help="address of the UR controller; default: the cell's"
    )
    parser.add_argument(
        "--cell", default="lab", help="name of a cell, or a path ending in .yaml. Default: lab"
    )
    parser.add_argument(
        "--calibration", default="", help="folder of the calibration; default: the cell's"
    )
    parser.add_argument("--namespace", default="", help="ROS namespace of the cell")
    parser.add_argument("--no-cameras", action="store_true", help="do not listen to the cameras")
    return parser


if __name__ == "__main__":
    sys.exit(main())
