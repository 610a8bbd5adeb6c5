# SPDX-License-Identifier: MIT
"""One emulated robot: controller, gripper and ports, and the loop that runs them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ur_emulator.arms import Arm
from ur_emulator.constants import Ports, RobotModel, Service
from ur_emulator.controller.controller import Controller
from ur_emulator.controller.output_variables import output_variables
from ur_emulator.controller.safety_system import Delays
from ur_emulator.profile import LENIENT, Profile
from ur_emulator.protocols.connections import Connection, Network, Session
from ur_emulator.protocols.control_api import ControlSession
from ur_emulator.protocols.dashboard import DashboardSession
from ur_emulator.protocols.robotiq_server import GripperTiming, RobotiqSession, RobotiqUnit
from ur_emulator.protocols.rtde_server import RtdeSession
from ur_emulator.protocols.script_port import ScriptSession

# A controller runs every one of its cycles. A loop that was held up runs the missed ones at once,
# one after the other; only a loop later than this skips them, and counts and dates the loss.
_MAX_CATCH_UP_S = 1.0


class EmulatedRobot:
    """A robot on its ports; `run` serves it."""

    def __init__(
        self,
        address: str,
        ports: Ports,
        model: RobotModel,
        arm: Arm,
        delays: Delays,
        profile: Profile = LENIENT,
        linger_s: float = 0.0,
    ) -> None:
        """`linger_s`: how long it waits for its clients to leave when it is asked to end [s]."""
        self._linger_s = linger_s
        self.network = Network(address)
        self.controller = Controller(model, arm, delays, profile)
        self._delays = delays
        self.robotiq = RobotiqUnit(
            arm.gripper,
            GripperTiming(
                activation_s=delays.gripper_activation_s,
                echo_s=profile.gripper_echo_s,
                motion_s=profile.gripper_motion_s,
                power_s=profile.gripper_power_s,
                speed_scale=profile.gripper_speed_scale,
            ),
        )
        self._jitter_s = profile.cycle_jitter_s
        self._rng = np.random.default_rng(0)
        self._boot_until_s: float | None = None
        self._stop_by_s: float | None = None
        self._cycles = 0
        self._late_cycles = 0
        self._lost_cycles = 0
        self._worst_late_s = 0.0
        self._declare(ports)
        arm.kinematics.compile()
        # One cycle compiles the rest; a client would take the pause for a dead controller.
        self.controller.cycle()
        self.network.open()

    def run(self) -> None:
        """Serve until a shutdown is requested; absolute deadlines on the monotonic clock."""
        period_s = self.controller.period_s
        deadline_s = time.monotonic() + period_s
        try:
            while not self._may_end():
                due_s = deadline_s + self._lateness_s(period_s)
                while (left_s := due_s - time.monotonic()) > 0:
                    self.network.poll(left_s)
                self.network.poll(0.0)
                self._note_lateness(time.monotonic() - due_s)
                self._cycle()
                deadline_s += period_s
                behind_s = time.monotonic() - deadline_s
                if behind_s > _MAX_CATCH_UP_S:
                    lost = int(behind_s / period_s)
                    self._lost_cycles += lost
                    # The controller's clock goes on while this process is not scheduled.
                    self.controller.timestamp_s += lost * period_s
                    deadline_s += lost * period_s
        finally:
            self.network.close()
            self.controller.arm.close()

    def _lateness_s(self, period_s: float) -> float:
        """How late this cycle is on purpose: half-normal, less than a period."""
        if self._jitter_s <= 0:
            return 0.0
        return min(abs(self._rng.normal(0.0, self._jitter_s)), 0.9 * period_s)

    def restart(self, boot_s: float | None) -> None:
        """Power-cycle: every connection drops, ports are dead until the controller has booted."""
        self.network.shut(keep=Service.CONTROL_API)
        wait_s = self._delays.boot_s if boot_s is None else float(boot_s)
        self._boot_until_s = time.monotonic() + wait_s
        self.controller.boot(powered=False)

    def statistics(self) -> dict[str, Any]:
        """Cycles run, late by more than half a period, skipped, and the worst lateness."""
        return {
            "cycles": self._cycles,
            "late_cycles": self._late_cycles,
            "lost_cycles": self._lost_cycles,
            "worst_late_ms": self._worst_late_s * 1e3,
        }

    def request_shutdown(self) -> None:
        """Leave the loop when the last client of arm and gripper has gone, or its time is over."""
        if self._stop_by_s is None:
            self._stop_by_s = time.monotonic() + self._linger_s

    def _may_end(self) -> bool:
        if self._stop_by_s is None:
            return False
        served = any(self.network.sessions(service) for service in (Service.RTDE, Service.GRIPPER))
        return not served or time.monotonic() >= self._stop_by_s

    def _cycle(self) -> None:
        if self._boot_until_s is not None and time.monotonic() >= self._boot_until_s:
            self._boot_until_s = None
            self.network.open(but=Service.CONTROL_API)
        self._publish()
        self.controller.cycle()
        self.robotiq.advance(self.controller.period_s)
        self.network.pump()

    def _publish(self) -> None:
        """Send the state at the beginning of this cycle, before anything is computed.

        A client that has it knows that what it sent before is being read, and has the whole period
        to answer.
        """
        # Whoever connects later has no part in it: his first answer would be about somebody else.
        message, self.controller.message = self.controller.message, None
        sessions = self.network.sessions(Service.RTDE)
        if not sessions:
            return
        values = output_variables(self.controller)
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

    def _declare(self, ports: Ports) -> None:
        serve = self.network.serve
        serve(Service.RTDE, ports.rtde, lambda c: RtdeSession(c, self.controller))
        serve(Service.DASHBOARD, ports.dashboard, lambda c: DashboardSession(c, self.controller))
        for port in ports.scripts:
            serve(Service.SCRIPT, port, self._script_session)
        serve(Service.GRIPPER, ports.gripper, lambda c: RobotiqSession(c, self.robotiq))
        serve(Service.CONTROL_API, ports.control_api, lambda c: ControlSession(c, self))

    def _script_session(self, connection: Connection) -> Session:
        return ScriptSession(connection, self.controller)
