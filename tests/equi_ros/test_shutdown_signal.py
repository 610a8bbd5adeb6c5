"""A signal ends the run at once, but in a shelter only where the shelter allows it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from equi_ros.shutdown_signal import EndRequest

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def end() -> Iterator[EndRequest]:
    """Listens; the handlers of before are put back."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    listening = EndRequest()
    listening.listen()
    yield listening
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: signal.Signals = signal.SIGTERM) -> None:
    """The handler of a signal that a process sends to itself has run when `kill` returns."""
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_outside_a_shelter_a_signal_interrupts_at_once(
    end: EndRequest, number: signal.Signals
) -> None:
    with pytest.raises(KeyboardInterrupt):
        send(number)


def test_a_shelter_is_finished_before_the_signal_is_raised(end: EndRequest) -> None:
    done = []

    def work() -> None:
        with end.shelter():
            send()
            done.append("the rest of the block")
        done.append("what comes after it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["the rest of the block"]


def test_a_check_in_a_shelter_raises_once(end: EndRequest) -> None:
    with end.shelter():
        end.check()
        send()
        with pytest.raises(KeyboardInterrupt):
            end.check()
        end.check()


def test_a_signal_that_the_shelter_has_raised_is_not_raised_again_at_its_end(
    end: EndRequest,
) -> None:
    with end.shelter():
        send()
        with pytest.raises(KeyboardInterrupt):
            end.check()


def test_a_shelter_within_a_shelter_opens_nothing(end: EndRequest) -> None:
    done = []

    def work() -> None:
        with end.shelter():
            with end.shelter():
                send()
            done.append("still sheltered")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


def test_an_error_in_the_shelter_is_what_is_reported(end: EndRequest) -> None:
    def fail() -> None:
        with end.shelter():
            send()
            raise ValueError("worse")

    with pytest.raises(ValueError, match="worse"):
        fail()


def test_while_the_end_is_under_way_signals_change_nothing(end: EndRequest) -> None:
    end.ignore()

    send()
    with end.shelter():
        send()


def test_steps_are_repeated_until_a_signal_and_the_last_one_is_finished(end: EndRequest) -> None:
    done: list[str] = []

    def step() -> None:
        if len(done) == 4:
            send()
        done.append("finished")

    end.repeat(step)
    assert len(done) == 5
    end.check()  # the request was granted: nothing is left to raise


def test_a_step_that_fails_ends_the_repetition(end: EndRequest) -> None:
    def step() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        end.repeat(step)
    with pytest.raises(KeyboardInterrupt):
        send()


def test_nohup_is_respected() -> None:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        EndRequest().listen()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
