# SPDX-License-Identifier: MIT
"""The gripper as the driver uses it: requests, what is held, and what was lost."""

from __future__ import annotations

from collections.abc import Callable

from equi_control.robotiq.client import RobotiqClient
from equi_control.robotiq.worker import GripperReport, GripperWorker

_SAME_CLOSEDNESS = 1e-3

WorkerFactory = Callable[[str], GripperWorker]
"""Makes the worker for the gripper at an address."""


def _worker_for(host: str) -> GripperWorker:
    return GripperWorker(RobotiqClient(host))


class Gripper:
    """Owns the gripper worker; a cell without a gripper has a healthy stand-in."""

    def __init__(self, make_worker: WorkerFactory | None = None) -> None:
        self._make_worker = make_worker or _worker_for
        self._worker: GripperWorker | None = None
        self._requested: float | None = None
        self._was_holding = False

    def connect(self, host: str) -> None:
        """Start to talk to the gripper; nothing moves."""
        self._worker = self._make_worker(host)
        self._worker.start()

    @property
    def exists(self) -> bool:
        """Whether the cell has a gripper."""
        return self._worker is not None

    @property
    def report(self) -> GripperReport:
        """The newest report."""
        if self._worker is None:
            return GripperReport(connected=True, active=True, settled=True, reason="")
        return self._worker.report

    @property
    def closedness(self) -> float:
        """The newest request, 0 open .. 1 closed; open before the first."""
        return self._requested or 0.0

    def activate(self, within_s: float) -> None:
        """Ask for activation within a time [s]; the report shows when it is done."""
        if self._worker is not None:
            self._worker.activate(within_s)

    def close_to(self, closedness: float) -> None:
        """Go to a closedness; the same request is not sent twice."""
        unchanged = (
            self._requested is not None and abs(closedness - self._requested) < _SAME_CLOSEDNESS
        )
        if self._worker is not None and not unchanged:
            self._requested = closedness
            self._worker.move(closedness)

    def open(self) -> None:
        """Open, whatever was requested before."""
        self._requested = None
        self.close_to(0.0)

    def drop_unsent(self) -> None:
        """Forget what the gripper was not told yet: when it comes back it must stay still."""
        if self._worker is not None and self._worker.drop_unsent():
            self._requested = None  # else the same request would count as carried out

    def reset(self) -> None:
        """An operator has checked the gripper: forget requests and what came of them."""
        self._requested = None
        if self._worker is not None:
            self._worker.forget_request()

    def has_lost_object(self) -> bool:
        """Whether fingers that held an object have come to rest without it; once per loss."""
        report = self.report
        # Moving fingers report no object, also when they only squeeze a held one a little more.
        if not report.settled:
            return False
        # Opening on purpose is no loss.
        lost = self._was_holding and not report.holding and self.closedness > 0.5
        self._was_holding = report.holding
        return lost

    def stop(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.stop()
