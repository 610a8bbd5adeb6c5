# SPDX-License-Identifier: MIT
"""The servo process as its parent sees it."""

from __future__ import annotations

import logging
import os
import signal
import socket

import pytest
from families import wait_until

from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_control.servo.log_relay import LogReceiver, LogSender
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


def test_what_the_servo_process_logs_is_logged_by_its_parent(
    loopback_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    servo = ServoProcess(ServoConfig(LinkConfig(loopback_address)))  # where no robot is
    servo.start()
    try:

        def heard() -> bool:
            servo.beat()
            return "servo process runs at" in caplog.text

        wait_until(heard, 120.0, "its first line")
    finally:
        servo.kill()
    assert caplog.records[-1].name == "equi_control.servo.loop"


def test_the_last_words_of_an_ended_servo_process_are_heard_and_a_deaf_parent_holds_nobody_up(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver = LogReceiver()
    channel = socket.socket(fileno=os.dup(receiver.child_end.fileno()))
    receiver.child_started()
    sender = LogSender(channel)

    def say(text: str) -> None:
        sender.handle(logging.LogRecord("equi_control.x", logging.ERROR, "", 0, text, (), None))

    say("set-point refused: 100%")
    receiver.relay()
    assert caplog.messages == ["set-point refused: 100%"]
    assert caplog.records[0].levelno == logging.ERROR

    for _ in range(2000):  # more than fits
        say("nobody listens" + 300 * ".")
    assert "nobody listens" in capsys.readouterr().err
    channel.close()
    caplog.clear()
    receiver.relay()
    receiver.relay()
    assert 50 < len(caplog.messages) <= 100, "some of it at a time"
