"""Which pose the controller has surely read: the rule that keeps one pose to one cycle.

The controller reads its registers once per cycle. Two poses that arrive between two readings are
one jump: the arm is asked for twice the speed. The stream has no acknowledgement, but every state
package carries the controller's clock, and a cycle never begins before its time on that clock. So a
pose was read if a cycle has been seen that was due after the pose had been handed over. Only then
may the next one be sent; until then the old one is repeated. Whoever is late, this process, the
network or the controller's own packages, the arm moves later and never faster.
"""

from __future__ import annotations

import math

# The time from the beginning of a cycle to its package in our hands, and from our pose to the
# controller's registers, together, are taken to be shorter than this share of a period.
_TRANSIT_SHARE = 0.45
# The offset between the clocks may grow by this share of a period per package: more than any two
# quartz clocks drift apart, far less than a late package would make believe.
_DRIFT_SHARE = 1e-3


class CycleClock:
    """The controller's clock as seen from here, and the newest pose on its way."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        # Exact once a few packages have come; the loop idles for many before it streams.
        self._offset_s = math.inf
        self._handed_over_s = -math.inf

    def saw_cycle(self, controller_time_s: float, now_s: float) -> None:
        """A package of the cycle `controller_time_s` is here; `now_s` was read after it came."""
        drifted_s = self._offset_s + _DRIFT_SHARE * self._period_s
        self._offset_s = min(now_s - controller_time_s, drifted_s)

    def handed_over(self, now_s: float) -> None:
        """A new pose has left; `now_s` was read after it left."""
        self._handed_over_s = now_s

    def was_read(self, controller_time_s: float) -> bool:
        """Whether the newest pose has been read by the cycle `controller_time_s` or before."""
        due_s = controller_time_s + self._offset_s
        return due_s >= self._handed_over_s + _TRANSIT_SHARE * self._period_s

    def periods_since_pose(self, now_s: float) -> float:
        """Time since the newest pose left, in periods; 0 before the first one.

        By our own clock: after a hold-up of this process, old packages come out of the queue first.
        """
        if math.isinf(self._handed_over_s):
            return 0.0
        return (now_s - self._handed_over_s) / self._period_s
