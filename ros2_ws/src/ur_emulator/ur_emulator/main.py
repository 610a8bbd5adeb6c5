# SPDX-License-Identifier: MIT
"""`ur-emulator`: one emulated UR controller in a process of its own, on one loopback address."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib.metadata import entry_points
from pathlib import Path

from ur_emulator import single_thread

# isort: split
from ur_emulator.arms import Arm, KinematicArm
from ur_emulator.conformance_file import ConformanceFile
from ur_emulator.conformance_table import as_text
from ur_emulator.constants import MODELS, Ports, RobotModel
from ur_emulator.controller.safety_system import Delays
from ur_emulator.fitting import Fit, fit
from ur_emulator.mechanics.kinematics import Kinematics
from ur_emulator.mechanics.links import LINKS, Links
from ur_emulator.profile import PROFILES, Profile, profile_for
from ur_emulator.profile_options import add_profile_options, with_options
from ur_emulator.robot import EmulatedRobot

_LOG = logging.getLogger(__name__)

_REALTIME_PRIORITY = 10
# Packages add arms of their own as entry points of this group:
# (rate_hz, scene_file, profile) -> Arm.
ARM_GROUP = "ur_emulator.arms"
# Values of the former option --series.
_MODEL_OF_SERIES = {"cb3": "ur5", "e-series": "ur5e"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `ur-emulator`."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(asctime)s emulator " + options.address + " %(message)s",
    )
    if options.realtime:
        _LOG.info(
            "running at %s priority, linear algebra threads: %s",
            _raise_priority(),
            single_thread.THREADS,
        )
    try:
        model = _model(options.model)
        ports = Ports() if options.port_base is None else Ports.block(options.port_base)
        fitted = _fit(options, model)
        profile = fitted.profile
        if options.conformance:
            sys.stdout.write(as_text(fitted))
            return 0
        arm = _make_arm(options, model, profile)
        delays = Delays(
            unlock_s=profile.unlock_s, gripper_activation_s=profile.gripper_activation_s
        ).scaled(options.delay_scale)
        robot = EmulatedRobot(options.address, ports, model, arm, delays, profile, options.linger_s)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"ur-emulator: {error}\n")
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: robot.request_shutdown())
    _LOG.info(
        "ready: %s, PolyScope %s at %d Hz, %s arm, RTDE on port %d",
        model.name,
        ".".join(str(part) for part in model.version),
        model.rate_hz,
        options.arm,
        ports.rtde,
    )
    robot.run()
    return 0


def _model(name: str) -> RobotModel:
    model = MODELS.get(_MODEL_OF_SERIES.get(name, name))
    if model is None:
        raise ValueError(f"model is '{name}'; emulated are: {', '.join(MODELS)}")
    return model


def _fit(options: argparse.Namespace, model: RobotModel) -> Fit:
    """The profile, fitted to a measured robot, and what the command line sets last."""
    base = Fit(profile_for(options.profile, model))
    if options.conformance_file is not None:
        file = ConformanceFile.load(options.conformance_file)
        if file.robot.model != model.name:
            raise ValueError(
                f"{options.conformance_file} was measured on a {file.robot.model} "
                f"('{file.robot.name}'); start with --model {file.robot.model}"
            )
        base = fit(base.profile, file)
    changed = with_options(base.profile, options)
    own = {
        item.name
        for item in fields(changed)
        if getattr(changed, item.name) != getattr(base.profile, item.name)
    }
    return Fit(changed, base.robot, base.measured - own)


def _make_arm(options: argparse.Namespace, model: RobotModel, profile: Profile) -> Arm:
    if options.arm == "kinematic":
        return KinematicArm(Kinematics(_links(model, profile), profile.factory_seed), profile)
    found = entry_points(group=ARM_GROUP, name=options.arm)
    if not found:
        known = ", ".join(sorted({"kinematic", *entry_points(group=ARM_GROUP).names}))
        raise ValueError(
            f"no arm is called '{options.arm}'; installed are: {known}. "
            f"A package adds one as an entry point of the group {ARM_GROUP}"
        )
    make: Callable[[int, Path | None, Profile], Arm] = next(iter(found)).load()
    arm = make(model.rate_hz, options.scene_file, profile)
    if arm.kinematics.links != _links(model, profile):
        arm.close()
        raise ValueError(
            f"the arm '{options.arm}' does not have the links of a {model.name}; use --model ur5, "
            "or --model ur5e with --no-own-links (an e-Series controller with the arm of a UR5)"
        )
    if profile.factory_seed:
        _LOG.warning(
            "factory_seed %d is IGNORED: the arm '%s' has the nominal links of a %s; only the "
            "kinematic arm has factory kinematics",
            *(profile.factory_seed, options.arm, model.name),
        )
    return arm


def _links(model: RobotModel, profile: Profile) -> Links:
    return LINKS["ur5" if model.name == "ur5e" and not profile.own_links else model.name]


def _raise_priority() -> str:
    """Ask for the priority of a controller; says what was granted, and never fails."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_REALTIME_PRIORITY))
        return "real-time"
    except (AttributeError, OSError):  # not Linux, or not permitted: see `ulimit -r`
        pass
    try:
        return f"raised (nice {os.nice(-10)})"
    except OSError:
        return "normal"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ur-emulator",
        description=__doc__,
        epilog="Example: ur-emulator --address 127.0.0.2 --model ur5 --delay-scale 0.05",
    )
    parser.add_argument(
        "--address",
        default="127.0.0.2",
        help="loopback address of this robot (127.x.x.x); each robot needs its own. "
        "Default: %(default)s",
    )
    parser.add_argument(
        "--model",
        "--series",
        default="ur5",
        help="ur3, ur5, ur10 (CB3 controller 3.15, 125 Hz), ur3e, ur5e, ur10e or ur16e (e-Series "
        "controller 5.11, 500 Hz); --series cb3 and --series e-series are old names of ur5 and "
        "ur5e. Default: %(default)s",
    )
    parser.add_argument(
        "--profile",
        default="lenient",
        help=f"how strictly it behaves like a robot: {' or '.join(PROFILES)}. Default: %(default)s",
    )
    parser.add_argument(
        "--conformance-file",
        type=Path,
        help="behave like the robot on which equi-conformance wrote this file",
    )
    parser.add_argument(
        "--conformance",
        action="store_true",
        help="print what each behaviour is based on (measured, documented, guessed), and exit",
    )
    parser.add_argument(
        "--port-base",
        type=int,
        help="use seven ports in a row from here on (dashboard, three script ports, RTDE, "
        "gripper, control API) instead of the real ones. ur_rtde cannot connect to these: its "
        "ports are fixed",
    )
    parser.add_argument(
        "--arm",
        default="kinematic",
        help="kinematic (no masses, no contacts), or one that another package adds. "
        "Default: %(default)s",
    )
    parser.add_argument(
        "--delay-scale",
        type=float,
        default=1.0,
        help="factor on the controller's delays (unlock 5 s, power on 4 s, ...); tests use 0.05",
    )
    parser.add_argument(
        "--scene-file",
        type=Path,
        help="physics arm: file in which simulated cameras find the current shapes",
    )
    parser.add_argument(
        "--realtime", action="store_true", help="request real-time priority, as a controller has"
    )
    parser.add_argument(
        "--linger-s",
        type=float,
        default=0.0,
        help="when asked to end, wait at most this long until the drivers have released arm and "
        "gripper: a launch stops all of its processes at once. Default: %(default)s",
    )
    parser.add_argument("--verbose", action="store_true", help="log every connection")
    add_profile_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
