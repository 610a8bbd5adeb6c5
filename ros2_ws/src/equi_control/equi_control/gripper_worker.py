"""A thread that owns the gripper: polls it, carries out the newest wish, says when it is gone.

The gripper's port is slow and may block; the driver must not. The worker holds the last status,
and a lost gripper shows as `connected = False` with the reason, never as an old `holding`.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace

from equi_control.robotiq_client import GripperError, GripperStatus, RobotiqClient

_LOG = logging.getLogger(__name__)
_POLL_S = 0.04
# Fingers that were sent at least this far (shares of the stroke) and have moved less than that are
# jammed, where nothing else can have stopped them.
_SENT = 0.06
_MOVED = 0.012
_FULLY_OPEN = 0.95


@dataclass(frozen=True)
class GripperReport:
    """What the driver may believe about the gripper now."""

    connected: bool = False
    active: bool = False
    opening: float = 1.0
    holding: bool = False
    settled: bool = False
    """The newest wish has been carried out, or stopped by an object."""
    jammed: bool = False
    """The fingers did not move at all, and it was no object that kept them from it."""
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
        self._activate = False
        self._wish: tuple[int, float] | None = None
        self._wish_number = 0
        self._sent_number = 0
        self._sent_from: float | None = None
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

    def activate(self) -> None:
        """Ask for activation; the report shows when it is done."""
        self._activate = True
        self._wake.set()

    def move(self, closedness: float) -> None:
        """Ask for a closedness; replaces an older wish."""
        with self._lock:
            self._wish_number += 1
            self._wish = (self._wish_number, closedness)
            self._report = replace(self._report, settled=False)
        self._wake.set()

    def forget_wish(self) -> None:
        """Forget the newest wish and what came of it: a person has seen to the gripper."""
        with self._lock:
            self._wish = None
            self._sent_from = None
            self._report = replace(self._report, jammed=False)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._serve()
            except GripperError as error:
                with self._lock:
                    self._report = GripperReport(reason=str(error))
                self._client.close()
                self._stop.wait(0.5)
        self._client.close()

    def _serve(self) -> None:
        self._client.connect()
        while not self._stop.is_set():
            if self._activate:
                self._client.activate()
                self._activate = False
            with self._lock:
                wish = self._wish
            if wish is not None and wish[0] != self._sent_number:
                self._sent_from = self._client.status().opening
                self._client.move(wish[1])
                self._sent_number = wish[0]
            self._publish(self._client.status())
            self._wake.wait(_POLL_S)
            self._wake.clear()

    def _publish(self, status: GripperStatus) -> None:
        with self._lock:
            carried_out = self._wish is None or self._wish[0] == self._sent_number
            jammed = carried_out and self._is_jammed(status)
            self._report = GripperReport(
                connected=True,
                active=status.active,
                opening=status.opening,
                holding=status.holding and not jammed,
                settled=carried_out and not status.moving,
                jammed=jammed,
                fault=status.fault,
                reason="" if status.active else "gripper is not activated",
            )

    def _is_jammed(self, status: GripperStatus) -> bool:
        """Whether the fingers stand where they stood, although they were sent elsewhere.

        Fingers that close on something from partly open cannot be told from jammed ones; but
        nothing is as wide as the fully open gripper, and nothing held keeps it from opening.
        """
        if self._wish is None or self._sent_from is None or not status.active or status.moving:
            return False
        way = (1.0 - self._wish[1]) - self._sent_from
        if abs(way) < _SENT or abs(status.opening - self._sent_from) > _MOVED:
            return False
        return way > 0.0 or self._sent_from > _FULLY_OPEN
