# SPDX-License-Identifier: MIT
"""The servo process as its parent sees it: start, command, poll, end; notices when it hangs."""

from __future__ import annotations

import multiprocessing
import signal
import time
from multiprocessing import resource_tracker
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equi_control.servo.config import ServoConfig
from equi_control.servo.heartbeat import Heartbeat
from equi_control.servo.log_relay import LogReceiver
from equi_control.servo.loop import run_servo
from equi_control.servo.shared_state import Phase, ServoState, SharedState


class ServoProcess:
    """Handle on one servo process; never reused after it ended."""

    def __init__(self, config: ServoConfig) -> None:
        context = multiprocessing.get_context("spawn")
        self._state = SharedState(context)
        self._heartbeat = Heartbeat(context)
        self._log = LogReceiver()
        receiver, self._commands = context.Pipe(duplex=False)
        self._process = context.Process(
            target=run_servo,
            args=(config, receiver, self._state, self._heartbeat, self._log.child_end),
            name="equi-servo",
            daemon=True,
        )
        self._receiver = receiver
        self._started_s = 0.0

    def start(self) -> None:
        """Start the process; it connects by itself and moves nothing."""
        self._started_s = time.monotonic()
        # The first start of a child starts this helper too, which would let signals in again.
        resource_tracker.ensure_running()
        # Inherited: Ctrl-C is for the driver alone, also while the child still imports.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        # Only the child may hold this end: its death then shows as a broken pipe.
        self._receiver.close()
        self._log.child_started()

    @property
    def pid(self) -> int | None:
        """Process id."""
        return self._process.pid

    def state(self) -> ServoState:
        """Newest shared state."""
        return self._state.read()

    def silence_s(self) -> float:
        """Time since the process last gave a sign of life [s]."""
        return time.monotonic() - max(self.state().heartbeat_s, self._started_s)

    @property
    def alive(self) -> bool:
        """Whether the process exists."""
        return self._process.is_alive()

    def beat(self) -> None:
        """Tell it that the driver is alive, and log what it has logged.

        A driver that does not is taken to hang.
        """
        self._heartbeat.beat()
        self._log.relay()

    def activate(self) -> None:
        """Ask it to take over the arm where it is."""
        self.beat()
        self._send("activate")

    def move_to(self, number: int, target: ArrayLike) -> None:
        """Set the target pose (4,): x, y, z [m], yaw [rad] in the task frame."""
        self._send("target", number, [float(value) for value in np.asarray(target)])

    def decelerate(self) -> None:
        """Stop on the way, within the caps."""
        self._send("decelerate")

    def settle(self) -> None:
        """Give up the target: go, within the caps, to where the arm is measured to be."""
        self._send("settle")

    def begin_end(self) -> None:
        """Ask it to brake along its trajectory and end; returns at once.

        One that still imports has nothing to brake, and would answer after seconds only.
        """
        if self._process.is_alive() and not self.state().heartbeat_s > 0:
            self._process.kill()
        self._send("end")

    def abort(self, why: str) -> None:
        """Ask it to stop the arm at once and end; returns at once."""
        self._send("abort", why)

    def end(self, timeout_s: float = 4.0) -> None:
        """Let it stop the arm and end; kill it if it does not (the robot's watchdog stops it)."""
        self.begin_end()
        self._process.join(timeout_s)
        self.kill()

    def kill(self) -> None:
        """End it at once, if it has not ended; what it has logged last is heard."""
        if self._process.is_alive():
            self._process.kill()
            self._process.join(2.0)
        self._log.relay()

    @property
    def phase(self) -> Phase:
        """Phase of its life."""
        return self.state().phase

    def _send(self, *command: Any) -> None:
        try:
            self._commands.send(command)
        except (BrokenPipeError, OSError):
            return  # it has ended; its last state says why
