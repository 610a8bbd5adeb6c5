# SPDX-License-Identifier: MIT
"""Which pose the controller has surely read: the rule that keeps one pose to one cycle.

The controller reads its registers once per cycle. Two poses that arrive between two readings are
one jump: the arm is asked for twice the speed. The stream has no acknowledgement, but every state
package carries the controller's clock, and a cycle never begins before its time on that clock. So a
pose was read if a cycle has been seen that was due after the pose had been handed over. Only then
may the next one be sent; until then the old one is repeated. Whoever is late, this process, the
network or the controller's own packages, the arm moves later and never faster.

After a longer hold-up the arm has slowed down at the last pose. Then that pose is repeated until
two cycles have surely read it, and the motion goes on from rest.
"""

from __future__ import annotations

import math

# The time from the beginning of a cycle to its package in our hands, and from our pose to the
# controller's registers, together, are taken to be shorter than this share of a period.
_TRANSIT_SHARE = 0.45
# The offset between the clocks may grow by this share of a period per package: more than any two
# quartz clocks drift apart, far less than a late package would make believe.
_DRIFT_SHARE = 1e-3
# Packages further apart than this, or a pose that took this long to compute and send, are a pause.
_PAUSE_PERIODS = 2.5
# After a pause: this long a time from the pose to the beginning of the newest cycle seen.
_REST_PERIODS = 2.0


class CycleClock:
    """The controller's clock as seen from here, and the newest pose on its way."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        # Exact once a few packages have come; the loop idles for many before it streams.
        self._offset_s = math.inf
        self._seen_s = math.inf
        self._handed_over_s = -math.inf
        self.paused = False
        """Whether the next pose begins a motion from rest."""

    def saw_cycle(self, controller_time_s: float, now_s: float) -> None:
        """A new package, of the cycle `controller_time_s`, is here; `now_s` was read after it."""
        drifted_s = self._offset_s + _DRIFT_SHARE * self._period_s
        self._offset_s = min(now_s - controller_time_s, drifted_s)
        self.paused |= now_s - self._seen_s > _PAUSE_PERIODS * self._period_s
        self._seen_s = now_s

    def next_due_s(self, controller_time_s: float) -> float:
        """When the package after that of `controller_time_s` should be here, by our clock."""
        return controller_time_s + self._offset_s + self._period_s

    def may_send(self, controller_time_s: float) -> bool:
        """Whether the cycle `controller_time_s` or one before it has read the newest pose."""
        since_s = controller_time_s + self._offset_s - self._handed_over_s
        return since_s >= (_REST_PERIODS if self.paused else _TRANSIT_SHARE) * self._period_s

    def handed_over(self, now_s: float) -> None:
        """A new pose has left; `now_s` was read after it left."""
        self._handed_over_s = now_s
        self.paused = now_s - self._seen_s > _PAUSE_PERIODS * self._period_s
