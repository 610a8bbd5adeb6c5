# SPDX-License-Identifier: MIT
"""A signal interrupts at once; while signals are deferred, only at a safe place."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest

from equi_ros.shutdown_signal import ShutdownSignal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def shutdown() -> Iterator[ShutdownSignal]:
    """Listens; the earlier handlers are restored."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    listening = ShutdownSignal()
    listening.listen()
    yield listening
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: signal.Signals = signal.SIGTERM) -> None:
    """The handler of a signal that a process sends to itself has run when `kill` returns."""
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_interrupts_at_once(shutdown: ShutdownSignal, number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt):
        send(number)


def test_a_signal_in_a_finalizer_is_raised_at_the_next_safe_place(
    shutdown: ShutdownSignal, monkeypatch: pytest.MonkeyPatch
) -> None:
    swallowed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", swallowed.append)

    class Finalized:
        def __del__(self) -> None:
            send()

    Finalized()

    with pytest.raises(KeyboardInterrupt):
        shutdown.check()
    assert swallowed == []


def test_a_deferring_block_is_finished_before_the_signal_is_raised(
    shutdown: ShutdownSignal,
) -> None:
    done = []

    def work() -> None:
        with shutdown.defer():
            send()
            done.append("the rest of the block")
        done.append("what comes after it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["the rest of the block"]


def test_a_check_in_a_deferring_block_raises_once(shutdown: ShutdownSignal) -> None:
    with shutdown.defer():
        shutdown.check()
        send()
        with pytest.raises(KeyboardInterrupt):
            shutdown.check()
        shutdown.check()


def test_a_signal_that_was_raised_by_a_check_is_not_raised_again_at_the_end_of_the_block(
    shutdown: ShutdownSignal,
) -> None:
    with shutdown.defer():
        send()
        with pytest.raises(KeyboardInterrupt):
            shutdown.check()


def test_a_nested_block_does_not_end_the_deferral(shutdown: ShutdownSignal) -> None:
    done = []

    def work() -> None:
        with shutdown.defer():
            with shutdown.defer():
                send()
            done.append("still deferred")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


def test_an_error_in_a_deferring_block_outranks_the_signal(shutdown: ShutdownSignal) -> None:
    def fail() -> None:
        with shutdown.defer():
            send()
            raise ValueError("worse")

    with pytest.raises(ValueError, match="worse"):
        fail()


def test_during_shutdown_further_signals_change_nothing(shutdown: ShutdownSignal) -> None:
    shutdown.ignore()

    send()
    with shutdown.defer():
        send()


def test_spin_repeats_until_a_signal_and_finishes_the_last_step(shutdown: ShutdownSignal) -> None:
    done: list[str] = []

    def step() -> None:
        if len(done) == 4:
            send()
        done.append("finished")

    shutdown.spin(step)
    assert len(done) == 5
    shutdown.check()  # the signal was handled: nothing is left to raise


def test_a_step_that_fails_ends_the_spin(shutdown: ShutdownSignal) -> None:
    def step() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        shutdown.spin(step)
    with pytest.raises(KeyboardInterrupt):
        send()


def test_nohup_is_respected() -> None:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        ShutdownSignal().listen()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
