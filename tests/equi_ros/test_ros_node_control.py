# SPDX-License-Identifier: MIT
"""Bringing a node up though requests and answers get lost, as they do on a busy machine."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest
from families import wait_until
from lifecycle_msgs.srv import ChangeState, GetState
from rclpy.task import Future

from equi_ros.condition_waiter import ConditionWaiter
from equi_ros.lifecycle import ros_node_control
from equi_ros.lifecycle.bringup import ACTIVE, INACTIVE, UNCONFIGURED, UNKNOWN
from equi_ros.lifecycle.ros_node_control import RosNodeControl

LOST_REQUEST, LOST_ANSWER, REFUSED, FINE = "lost request", "lost answer", "refused", "fine"
LOST_ERROR = "an error of the node, and its answer lost"


class Eye:
    """A lifecycle node on a bad line: says of each call what becomes of it; afterwards all work."""

    def __init__(self, questions: tuple[str, ...] = (), transitions: tuple[str, ...] = ()) -> None:
        self.state = INACTIVE
        self.fates: dict[type, list[str]] = {
            GetState: list(questions),
            ChangeState: list(transitions),
        }
        self.calls: dict[type, int] = {GetState: 0, ChangeState: 0}

    def answer(self, service: Any, future: Future) -> None:
        self.calls[service] += 1
        fate = self.fates[service].pop(0) if self.fates[service] else FINE
        response = service.Response()
        if service is ChangeState and fate in (LOST_ANSWER, FINE):
            self.state = ACTIVE
        if fate == LOST_ERROR:
            self.state = UNCONFIGURED
        if service is GetState:
            response.current_state.label = self.state
        else:
            response.success = fate == FINE
        if fate in (FINE, REFUSED):
            future.set_result(response)

    # As rclpy's node and client.

    def create_client(self, service: type, name: str) -> Any:
        return Client(self, service)

    def get_logger(self) -> Any:
        return self

    def info(self, text: str) -> None:
        pass


class Client:
    def __init__(self, node: Eye, service: type) -> None:
        self._node, self._service = node, service

    def service_is_ready(self) -> bool:
        return True

    def call_async(self, request: Any) -> Future:
        future = Future()
        self._node.answer(self._service, future)
        return future

    def remove_pending_request(self, future: Future) -> None:
        pass


class Manager:
    """Drives the control as the executor of a node does."""

    def __init__(self, eye: Eye, timeout_s: float = 20.0) -> None:
        self.failed = False
        self.waiter = ConditionWaiter()
        node: Any = eye
        self.control = RosNodeControl(
            node, ("eye",), self.waiter, lambda: self.failed, timeout_s, timeout_s
        )
        self.control.states["eye"] = INACTIVE

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        found: list[Any] = []

        def done() -> bool:
            self.waiter.poll()
            try:
                work.send(None)
            except StopIteration as end:
                found.append(end.value)
            return bool(found)

        wait_until(done, 30.0, "an answer")
        return found[0]


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ros_node_control, "_REPEAT_S", 0.05)


@pytest.mark.parametrize("fate", [LOST_REQUEST, LOST_ANSWER])
def test_a_question_is_repeated_until_somebody_answers(fate: str) -> None:
    eye = Eye(questions=(fate, fate))
    manager = Manager(eye)
    assert manager.run(manager.control.get_state("eye")) == INACTIVE
    assert eye.calls[GetState] == 3


def test_a_node_that_never_answers_is_unknown_in_the_end() -> None:
    manager = Manager(Eye(questions=(LOST_REQUEST,) * 1000), timeout_s=0.3)
    assert manager.run(manager.control.get_state("eye")) == UNKNOWN


def test_a_transition_whose_answer_got_lost_is_not_asked_for_again() -> None:
    eye = Eye(transitions=(LOST_ANSWER,))
    manager = Manager(eye)
    assert manager.run(manager.control.change_state("eye", "activate"))
    assert eye.calls[ChangeState] == 1


def test_a_node_that_an_error_has_led_elsewhere_is_not_waited_for() -> None:
    eye = Eye(transitions=(LOST_ERROR,))
    manager = Manager(eye, timeout_s=1000.0)
    assert not manager.run(manager.control.change_state("eye", "activate"))
    assert eye.calls[ChangeState] == 1


def test_a_transition_that_nobody_heard_of_is_asked_for_again() -> None:
    eye = Eye(transitions=(LOST_REQUEST, LOST_REQUEST))
    manager = Manager(eye)
    assert manager.run(manager.control.change_state("eye", "activate"))
    assert (eye.state, eye.calls[ChangeState]) == (ACTIVE, 3)


def test_a_refusal_is_final() -> None:
    eye = Eye(transitions=(REFUSED,))
    manager = Manager(eye)
    assert not manager.run(manager.control.change_state("eye", "activate"))
    assert eye.calls[ChangeState] == 1


def test_the_failure_of_another_node_ends_the_wait() -> None:
    manager = Manager(Eye(transitions=(LOST_REQUEST,) * 1000), timeout_s=1000.0)
    manager.failed = True
    assert not manager.run(manager.control.change_state("eye", "activate"))
