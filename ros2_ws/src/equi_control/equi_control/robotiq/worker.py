# SPDX-License-Identifier: MIT
"""A thread that owns the gripper: polls it, carries out the newest request, says when it is gone.

The gripper's port is slow and may block; the driver must not. The worker holds the last status,
and a lost gripper shows as `connected = False` with the reason, never as an old `holding`.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, replace

from equi_control.robotiq.client import (
    GripperError,
    GripperStatus,
    ObjectStatus,
    RobotiqClient,
    count_of,
)

_LOG = logging.getLogger(__name__)
_POLL_S = 0.04
# Fingers that were sent at least this far (shares of the stroke) and have moved less than that are
# jammed, where nothing else can have stopped them.
_JAM_GRACE_S = 0.3
"""Fingers may take so long to leave the place where they rest."""
# Fingers that stopped short of their target: POS must have stood still for this long, so that an
# OBJ of the motion before is not believed; for the longer time if OBJ does not fit the request.
_STILL_S = 0.15
_STILL_ANYWAY_S = 0.6
_SENT = 0.06
_MOVED = 0.012
# Nothing is as wide as this. A little less open, one finger may stand beside a rigid object that is
# not in the middle, and a policy seldom asks for more.
_FULLY_OPEN = 0.99
# Something beside the fingers can keep them from opening, and the arm then takes them away from it.
# After so many requests in a row that did not move them it is no longer believed.
_REFUSALS_UNTIL_JAM = 5


@dataclass(frozen=True)
class GripperReport:
    """What the driver may believe about the gripper now."""

    connected: bool = False
    active: bool = False
    opening: float = 1.0
    holding: bool = False
    settled: bool = False
    """The newest request has been carried out, or stopped by an object."""
    jammed: bool = False
    """The fingers did not move at all, and it was no object that kept them from it, or that kept on
    being said of too many requests."""
    fault: int = 0
    reason: str = "gripper not connected yet"


class GripperWorker:
    """Runs a RobotiqClient in the background."""

    def __init__(self, client: RobotiqClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._report = GripperReport()
        self._activate_by_s: float | None = None
        """Until when activation is wanted; None if it is not."""
        self._left_asked = False
        """Whether the gripper may still be told to activate: the connection broke meanwhile."""
        self._position: int | None = None
        self._still_since_s = 0.0
        self._request: tuple[int, float] | None = None
        """Number and closedness of what is to be sent next."""
        self._request_number = 0
        self._sent: float | None = None
        """The closedness that was sent last: a jam is detected by it."""
        self._sent_from: float | None = None
        self._sent_holding = False
        self._sent_s = 0.0
        self._refusals = 0
        """Requests to open in a row that did not move the fingers."""
        self._refusal_counted = False
        self._thread = threading.Thread(target=self._run, name="gripper", daemon=True)

    def start(self) -> None:
        """Begin to poll; nothing moves before `activate` or `move`."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close the port."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=3.0)

    @property
    def report(self) -> GripperReport:
        """The newest report."""
        with self._lock:
            return self._report

    def activate(self, within_s: float = 12.0) -> None:
        """Ask for activation; the report shows when it is done.

        A gripper that gets its power later is not activated any more: nobody expects its stroke.
        """
        with self._lock:
            self._activate_by_s = time.monotonic() + within_s
        self._wake.set()

    def move(self, closedness: float) -> None:
        """Ask for a closedness; replaces an older request."""
        with self._lock:
            self._request_number += 1
            self._request = (self._request_number, closedness)
            self._report = replace(self._report, settled=False)
        self._wake.set()

    def drop_unsent(self) -> bool:
        """Forget what was asked for and not sent: a gripper that comes back must stay still.

        What was sent is remembered: fingers that did not obey are still jammed.

        Returns:
            Whether a request to move was dropped.
        """
        with self._lock:
            dropped = self._request is not None
            self._request = None
            self._activate_by_s = None
        return dropped

    def forget_request(self) -> None:
        """Forget the newest request and what came of it: a person has checked the gripper."""
        with self._lock:
            self._request = None
            self._sent = None
            self._sent_from = None
            self._refusals = 0
            self._report = replace(self._report, jammed=False)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._serve()
            except GripperError as error:
                self._lose(str(error))
            except Exception as error:
                # A dead thread would leave the last report in place, with an object held.
                _LOG.exception("gripper worker failed")
                self._lose(f"gripper worker failed: {error}")
        self._client.close()

    def _lose(self, reason: str) -> None:
        with self._lock:
            self._report = GripperReport(reason=reason)
        self._client.close()
        self._stop.wait(0.5)

    def _serve(self) -> None:
        self._client.connect()
        if self._left_asked:
            self._client.withdraw_activation()
            self._left_asked = False
        while not self._stop.is_set():
            self._activate_if_asked()
            with self._lock:
                request = self._request
            if request is not None:
                self._send(request)
            self._publish(self._client.status())
            self._wake.wait(_POLL_S)
            self._wake.clear()

    def _activate_if_asked(self) -> None:
        with self._lock:
            by_s = self._activate_by_s
        if by_s is None:
            return
        left_s = by_s - time.monotonic()
        if left_s > 0.0:
            self._left_asked = True
            self._client.activate(left_s, lambda: self._activate_by_s == by_s)
            self._left_asked = False
        with self._lock:
            if self._activate_by_s == by_s:
                self._activate_by_s = None

    def _send(self, request: tuple[int, float]) -> None:
        before = self._client.status()
        if self._request != request:
            return  # dropped or replaced while the gripper answered
        self._client.move(request[1])
        with self._lock:
            self._sent, self._sent_from, self._sent_s = request[1], before.opening, time.monotonic()
            self._sent_holding, self._refusal_counted = before.holding, False
            if self._request == request:
                self._request = None

    def _publish(self, status: GripperStatus) -> None:
        with self._lock:
            carried_out = self._request is None and self._has_ended(status)
            stuck = self._request is None and self._is_stuck(status)
            had_time = time.monotonic() - self._sent_s > _JAM_GRACE_S
            jammed = stuck and had_time and not self._is_kept_from_opening(status)
            if jammed and not self._report.jammed:
                _LOG.warning("gripper sent from %s does not move: %s", self._sent_from, status)
            self._report = GripperReport(
                connected=True,
                active=status.active,
                opening=status.opening,
                holding=status.holding and not jammed,
                settled=carried_out and (had_time or not stuck),
                jammed=jammed,
                fault=status.fault,
                reason="" if status.active else "gripper is not activated",
            )

    def _has_ended(self, status: GripperStatus) -> bool:
        """Whether the newest request has been carried out, or stopped by an object."""
        now_s = time.monotonic()
        if status.position != self._position:
            self._position, self._still_since_s = status.position, now_s
        if self._sent is None:
            return not status.moving
        count = count_of(self._sent)
        if status.requested != count or status.moving:
            return False
        still_s = now_s - max(self._still_since_s, self._sent_s)
        if status.ended(count):
            arrived = status.object_status is ObjectStatus.AT_TARGET
            return arrived or still_s > _STILL_S
        return still_s > _STILL_ANYWAY_S

    def _is_stuck(self, status: GripperStatus) -> bool:
        """Whether the fingers have not moved, although they were sent elsewhere.

        Fingers that close on something from partly open cannot be told from jammed ones; but
        nothing is as wide as the fully open gripper.
        """
        if self._sent is None or self._sent_from is None or not status.active or status.moving:
            return False
        way = (1.0 - self._sent) - self._sent_from
        if abs(status.opening - self._sent_from) > _MOVED:
            self._refusals = 0
            return False
        return way >= _SENT or (way <= -_SENT and self._sent_from > _FULLY_OPEN)

    def _is_kept_from_opening(self, status: GripperStatus) -> bool:
        """Whether something beside the fingers may be what stops them, and not a jam.

        The gripper says that it was stopped while opening. Nothing that it *holds* can do that, and
        what stands beside it does not do it for ever.
        """
        if status.object_status is not ObjectStatus.STOPPED_OPENING or self._sent_holding:
            return False
        if not self._refusal_counted:
            self._refusals += 1
            self._refusal_counted = True
            _LOG.info("something keeps the fingers from opening (%d in a row)", self._refusals)
        return self._refusals < _REFUSALS_UNTIL_JAM
