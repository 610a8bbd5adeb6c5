# SPDX-License-Identifier: MIT
"""The servo process as its parent sees it."""

from __future__ import annotations

import os
import signal

from families import wait_until

from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.servo.process import ServoProcess
from equi_control.servo.shared_state import Phase


def test_ctrl_c_is_for_the_driver_alone_also_while_the_servo_process_still_imports(
    loopback_address: str,
) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    servo = ServoProcess(ServoConfig(LinkConfig(loopback_address)))  # where no robot is
    servo.start()
    try:
        pid = servo.pid
        assert pid is not None
        os.kill(pid, signal.SIGINT)

        # It has come as far as to say that no robot answers.
        wait_until(lambda: servo.phase is Phase.FAULTED or not servo.alive, 120.0, "its verdict")
        assert servo.phase is Phase.FAULTED
        assert "connection_lost" in servo.state().problem
    finally:
        servo.kill()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before


def test_a_servo_process_that_still_imports_is_ended_at_once(loopback_address: str) -> None:
    servo = ServoProcess(ServoConfig(LinkConfig(loopback_address)))
    servo.start()
    servo.end()
    assert not servo.alive
    assert servo.phase is Phase.CONNECTING  # it never came as far as to say anything
