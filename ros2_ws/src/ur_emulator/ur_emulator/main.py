"""`equi-ur-emulator`: one emulated robot in a process of its own, on one loopback address."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from equi_core.motion.realtime import raise_priority
from ur_emulator.arms import Arm, KinematicArm
from ur_emulator.constants import (
    CONTROL_API_PORT,
    DASHBOARD_PORT,
    GRIPPER_PORT,
    RTDE_PORT,
    SCRIPT_PORTS,
    SERIES,
    Series,
    Service,
)
from ur_emulator.control_api import ControlSession
from ur_emulator.controller.controller import Controller
from ur_emulator.controller.safety_system import Delays
from ur_emulator.protocols.connections import Connection, Network, Session
from ur_emulator.protocols.dashboard import DashboardSession
from ur_emulator.protocols.robotiq_server import RobotiqSession, RobotiqUnit
from ur_emulator.protocols.rtde_server import RtdeSession
from ur_emulator.protocols.script_port import ScriptSession

_LOG = logging.getLogger(__name__)

# A controller runs every one of its cycles. A loop that was held up runs the missed ones at once,
# one after the other; only a loop later than this gives them up, and counts and dates the loss.
_MOST_CATCH_UP_S = 1.0
_ACTIVATION_S = 2.5
_REALTIME_PRIORITY = 10
# Packages add arms of their own as entry points of this group: (rate_hz, scene_file) -> Arm.
ARM_GROUP = "ur_emulator.arms"


class EmulatedRobot:
    """Controller, gripper and ports of one robot, and the loop that runs them."""

    def __init__(self, address: str, series: Series, arm: Arm, delays: Delays) -> None:
        self.network = Network(address)
        self.controller = Controller(series, arm, delays)
        self._delays = delays
        activation_s = _ACTIVATION_S * delays.unlock_s / Delays().unlock_s
        self._robotiq = RobotiqUnit(arm.gripper, activation_s)
        self._boot_until_s: float | None = None
        self._stop = False
        self._cycles = 0
        self._late_cycles = 0
        self._lost_cycles = 0
        self._worst_late_s = 0.0
        self._declare_ports()
        self.network.open()

    def run(self) -> None:
        """Serve until asked to stop; absolute deadlines on the monotonic clock."""
        period_s = self.controller.period_s
        deadline_s = time.monotonic() + period_s
        try:
            while not self._stop:
                while (left_s := deadline_s - time.monotonic()) > 0:
                    self.network.poll(left_s)
                self.network.poll(0.0)
                self._note_lateness(time.monotonic() - deadline_s)
                self._cycle()
                deadline_s += period_s
                behind_s = time.monotonic() - deadline_s
                if behind_s > _MOST_CATCH_UP_S:
                    lost = int(behind_s / period_s)
                    self._lost_cycles += lost
                    # The clock of a controller does not stand still because nobody looked at it.
                    self.controller.timestamp_s += lost * period_s
                    deadline_s += lost * period_s
        finally:
            self.network.close()
            self.controller.arm.close()

    def restart(self, boot_s: float | None) -> None:
        """Power-cycle: every connection drops, ports are dead until the controller has booted."""
        self.network.shut(keep=Service.CONTROL_API)
        wait_s = self._delays.boot_s if boot_s is None else float(boot_s)
        self._boot_until_s = time.monotonic() + wait_s
        self.controller.boot(powered=False)

    def statistics(self) -> dict[str, Any]:
        """Cycles run, late by more than half a period, given up, and the worst lateness."""
        return {
            "cycles": self._cycles,
            "late_cycles": self._late_cycles,
            "lost_cycles": self._lost_cycles,
            "worst_late_ms": self._worst_late_s * 1e3,
        }

    def request_shutdown(self) -> None:
        """Leave the loop after this cycle."""
        self._stop = True

    def _cycle(self) -> None:
        if self._boot_until_s is not None and time.monotonic() >= self._boot_until_s:
            self._boot_until_s = None
            self.network.open(but=Service.CONTROL_API)
        self._publish()
        self.controller.cycle()
        self._robotiq.advance(self.controller.period_s)
        self.network.pump()

    def _publish(self) -> None:
        """Send the state at the beginning of this cycle, before anything is computed.

        A client that has it knows that what it sent before is being read, and has the whole period
        to answer.
        """
        sessions = self.network.sessions(Service.RTDE)
        if not sessions:
            return
        values = self.controller.variables()
        message, self.controller.message = self.controller.message, None
        for session in sessions:
            if isinstance(session, RtdeSession):
                if message is not None:
                    session.send_text(message)
                session.publish(values)
        self.network.pump()

    def _note_lateness(self, late_s: float) -> None:
        self._cycles += 1
        self._worst_late_s = max(self._worst_late_s, late_s)
        if late_s > self.controller.period_s / 2:
            self._late_cycles += 1

    def _declare_ports(self) -> None:
        serve = self.network.serve
        serve(Service.RTDE, RTDE_PORT, lambda c: RtdeSession(c, self.controller))
        serve(Service.DASHBOARD, DASHBOARD_PORT, lambda c: DashboardSession(c, self.controller))
        for port in SCRIPT_PORTS:
            serve(Service.SCRIPT, port, self._script_session)
        serve(Service.GRIPPER, GRIPPER_PORT, lambda c: RobotiqSession(c, self._robotiq))
        serve(Service.CONTROL_API, CONTROL_API_PORT, lambda c: ControlSession(c, self))

    def _script_session(self, connection: Connection) -> Session:
        return ScriptSession(connection, self.controller)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of `equi-ur-emulator`."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.INFO,
        format="%(asctime)s emulator " + options.address + " %(message)s",
    )
    if options.realtime:
        _LOG.info("running at %s priority", raise_priority(_REALTIME_PRIORITY).value)
    series = SERIES[options.series]
    try:
        arm = _make_arm(options, series)
        delays = Delays().scaled(options.delay_scale)
        robot = EmulatedRobot(options.address, series, arm, delays)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"equi-ur-emulator: {error}\n")
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: robot.request_shutdown())
    version = ".".join(str(part) for part in series.version)
    _LOG.info(
        "ready: %s %s at %d Hz, %s arm", series.robot_model, version, series.rate_hz, options.arm
    )
    robot.run()
    return 0


def _make_arm(options: argparse.Namespace, series: Series) -> Arm:
    if options.arm == "kinematic":
        return KinematicArm()
    found = entry_points(group=ARM_GROUP, name=options.arm)
    if not found:
        known = ", ".join(sorted({"kinematic", *entry_points(group=ARM_GROUP).names}))
        raise ValueError(
            f"no arm is called '{options.arm}'; installed are: {known}. "
            f"A package adds one as an entry point of the group {ARM_GROUP}"
        )
    make: Callable[[int, Path | None], Arm] = next(iter(found)).load()
    return make(series.rate_hz, options.scene_file)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="equi-ur-emulator",
        description=__doc__,
        epilog="Example: ros2 run equi_cell_sim equi-ur-emulator --address 127.0.0.2 --arm physics",
    )
    parser.add_argument("--address", default="127.0.0.2", help="loopback address of this robot")
    parser.add_argument(
        "--arm", default="kinematic", help="kinematic (no contact), or one that a package adds"
    )
    parser.add_argument("--series", choices=tuple(SERIES), default="cb3")
    parser.add_argument(
        "--delay-scale",
        type=float,
        default=1.0,
        help="factor on the controller's delays (unlock 5 s, power on 4 s, ...); tests use 0.05",
    )
    parser.add_argument(
        "--scene-file",
        type=Path,
        help="physics arm: file in which cameras find the shapes of this moment",
    )
    parser.add_argument(
        "--realtime", action="store_true", help="ask for real-time priority, as a controller has"
    )
    parser.add_argument("--verbose", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
