# SPDX-License-Identifier: MIT
"""What the servo process does about contact: brake, go back, and give way at rest."""

from __future__ import annotations

import math
import time

import numpy as np

from equi_control.rtde.robot_reading import Reading
from equi_control.rtde.rtde_link import RtdeLink
from equi_control.servo.config import ServoConfig
from equi_control.servo.contact import ContactMonitor
from equi_control.servo.streamer import Streamer
from equi_core.motion.blocked_step import (
    BACK_OFF_M,
    MOST_BACK_OFF_M,
    PRESSED_MORE_N,
    RELIEF_STEP_M,
)

# Contact is looked for until this long after the stream has ended.
_AFTER_STREAM_S = 0.5
# An arm at rest that is pushed by this many times the contact force follows, up to this far.
_PUSHED_SHARE = 2.0
_MOST_GIVEN_WAY_M = 0.01


class ContactYielding:
    """Notices contact and yields to it; every motion it makes is away from what presses."""

    def __init__(self, link: RtdeLink, config: ServoConfig, period_s: float) -> None:
        self._link, self._config, self._period_s = link, config, period_s
        self._geometry = config.link.geometry
        self._monitor = ContactMonitor(config, period_s)
        self._relief_m = 0.0
        self._pressed_n = math.inf
        self._pressed_at = np.eye(4)
        self._under_way_s = -math.inf
        self._rested_at = np.full(3, math.nan)
        self.blocked = False
        """Whether the step under way has met something; until the next one begins."""
        self.contacts = 0
        self.message = ""
        """About the newest contact."""

    def see(self, reading: Reading) -> None:
        """Take the force of a new cycle."""
        self._monitor.see(reading)

    def take_over(self) -> None:
        """Streaming begins; what was met before is over."""
        self.blocked = False

    def begin_step(self) -> None:
        """A new target: what is felt now is the new zero."""
        self.blocked = False
        self._monitor.begin_step()

    def watch(self, streamer: Streamer, reading: Reading) -> bool:
        """Notice contact and yield to it; False if the controller did not brake.

        The controller brakes by itself, because a stream would first have to use up what its
        smoothing holds. Then the arm goes back a little on its way, and further while it presses.
        """
        if self.blocked:
            self._relieve(streamer, reading)
            return True
        now_s = time.monotonic()
        if not streamer.trajectory.finished:
            self._under_way_s = now_s
        # The arm comes to rest later than the stream: smoothing, lag, a slow slider.
        if now_s - self._under_way_s > _AFTER_STREAM_S:
            self._give_way(streamer, reading)
            return True
        self._rested_at = streamer.commanded[:3]
        contact = self._monitor.contact(reading)
        if not contact:
            return True
        self.blocked = True
        self.contacts += 1
        self._relief_m, self._pressed_n = BACK_OFF_M, math.inf
        self.message = f"contact: {contact}"
        # At once, and at real-time priority: until the controller takes up its brake, which can
        # last on a busy computer, it must not press on to what was streamed last.
        if not self._link.servo(reading.base_link_from_tcp, self._period_s):
            return False
        if not self._link.brake(self._config.contact_deceleration_m_s2):
            return False
        here = self._geometry.to_task(self._link.read().base_link_from_tcp)
        streamer.restart_at(here)
        streamer.yield_to_contact(here, self._relief_m)
        self._pressed_at = here
        return True

    def _give_way(self, streamer: Streamer, reading: Reading) -> None:
        """Follow what pushes an arm at rest: fingers that close on something rigid beside them."""
        self._monitor.contact(reading)
        here = self._geometry.to_task(reading.base_link_from_tcp)
        given_m = float(np.linalg.norm(here[:3, 3] - self._rested_at))
        force_n = self._monitor.force_n
        if force_n > _PUSHED_SHARE * self._config.contact_force_n and given_m <= _MOST_GIVEN_WAY_M:
            self.contacts += 1
            self.message = f"pushed: {force_n:.0f} N at rest, {given_m * 1e3:.1f} mm given way"
            streamer.restart_at(here)

    def _relieve(self, streamer: Streamer, reading: Reading) -> None:
        """Take a blocked arm back while it still presses, by millimetres.

        Where that makes it press more, it gives up its way and stands where it was pushed to.
        """
        if not streamer.trajectory.finished:
            return
        self._monitor.contact(reading)
        force_n, before_n = self._monitor.force_n, self._pressed_n
        if not force_n > self._config.contact_force_n / 2:
            return
        if force_n > before_n + PRESSED_MORE_N:
            here = self._geometry.to_task(reading.base_link_from_tcp)
            given_m = float(np.linalg.norm(here[:3, 3] - self._pressed_at[:3, 3]))
            if given_m <= _MOST_GIVEN_WAY_M:
                streamer.restart_at(here)
                self._relief_m = MOST_BACK_OFF_M
        elif self._relief_m < MOST_BACK_OFF_M:
            self._relief_m += RELIEF_STEP_M
            self._pressed_n = force_n
            streamer.yield_to_contact(self._pressed_at, self._relief_m)
