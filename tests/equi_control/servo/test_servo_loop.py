# SPDX-License-Identifier: MIT
"""The servo loop on a robot that obeys at once: how it ends, and how it follows the slider."""

from __future__ import annotations

import itertools
import math
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from equi_control.rtde.config import LinkConfig
from equi_control.rtde.robot_reading import Reading
from equi_control.servo.config import ServoConfig
from equi_control.servo.heartbeat import Heartbeat
from equi_control.servo.loop import _ServoLoop
from equi_control.servo.shared_state import Phase, ServoState, SharedState
from equi_core.cell_geometry import CellGeometry
from equi_core.geometry import top_down_pose
from equi_core.motion.joint_limits import warm_up
from equi_core.motion.ur5_kinematics import HOME_RAD, inverse_near

POSE = top_down_pose((0.5, 0.0, 0.2), 0.0)
CONFIG = ServoConfig(LinkConfig("127.0.0.9"), driver_silence_s=0.1)
FAR = [0.5, 0.1, 0.2, 0.0]


class StandInLink:
    """A robot that follows at once; notes what it is told, and calls back in every cycle."""

    rate_hz = 125.0

    slider = 1.0
    push_n = 0.0
    stuck_at: Any = None
    """Where the tool is held by something rigid; None: it is free."""

    def __init__(self, in_cycle: Callable[[int], None]) -> None:
        self._in_cycle = in_cycle
        self._time_s = 0.0
        self._cycles = itertools.count()
        self.pose = POSE.copy()
        self.fastest_m_s = 0.0
        self.log: list[str] = []

    def open(self) -> None:
        pass

    def wait_for_cycle(self, after_s: float, timeout_s: float) -> bool:
        self._in_cycle(next(self._cycles))
        self._time_s += 0.008
        return True

    def cycle_time_s(self) -> float:
        return self._time_s

    def read(self) -> Reading:
        tcp = self.pose if self.stuck_at is None else self.stuck_at
        return Reading(
            base_link_from_tcp=tcp,
            base_link_from_target_tcp=self.pose,
            twist=np.zeros(6),
            wrench=np.array([0.0, self.push_n, 0.0, 0.0, 0.0, 0.0]),
            joints_rad=inverse_near(tcp @ np.linalg.inv(CellGeometry().flange_from_tcp), HOME_RAD),
            joint_speeds_rad_s=np.zeros(6),
            controller_time_s=self._time_s,
            age_s=0.0,
            connected=True,
            program_state=2,
            robot_mode=7,
            safety_mode=1,
            safety_bits=1,
            speed_slider=self.slider,
        )

    def arm_watchdog(self) -> None:
        self.log.append("watchdog")

    def servo(self, base_link_from_tcp: Any, period_s: float) -> bool:
        moved_m = float(np.linalg.norm(base_link_from_tcp[:3, 3] - self.pose[:3, 3]))
        self.fastest_m_s = max(self.fastest_m_s, moved_m / period_s)
        self.pose = np.array(base_link_from_tcp)
        self.log.append("servo")
        return True

    def brake(self, deceleration_m_s2: float) -> bool:
        self.braked_from = self.pose
        self.log.append("brake")
        return True

    def stop(self) -> None:
        self.log.append("stop")


def run(
    in_cycle: Callable[[int, Any, Heartbeat, StandInLink], None],
) -> tuple[StandInLink, ServoState, float]:
    """The loop from take-over on until it ends by itself: link, last state, duration [s]."""
    warm_up(CONFIG.joint_limits)  # compiling takes longer than the stand-in's driver may be silent
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    state, heartbeat = SharedState(context), Heartbeat(context)
    sender.send(("activate",))
    link: Any = StandInLink(lambda cycle: in_cycle(cycle, sender, heartbeat, link))
    loop = _ServoLoop(link, CONFIG, receiver, state, heartbeat)
    began_s = time.monotonic()
    loop.run()
    return link, state.read(), time.monotonic() - began_s


def test_a_driver_that_hangs_while_the_arm_moves_is_noticed_and_the_arm_stopped_first() -> None:
    """On the old code its servo process went on for ever: it had no sign of life to miss."""
    silent_since: list[float] = []

    def in_cycle(cycle: int, sender: Any, heartbeat: Heartbeat, link: StandInLink) -> None:
        if cycle < 20:
            heartbeat.beat()
        elif not silent_since:
            silent_since.append(time.monotonic())
        if cycle == 5:
            sender.send(("target", 1, FAR))
        assert cycle < 1000, "nobody noticed"

    link, last, _ = run(in_cycle)
    assert last.phase is Phase.FAULTED
    assert last.problem == "driver_silent"
    assert link.log[-1] == "stop"
    assert "servo" in link.log
    assert last.heartbeat_s - silent_since[0] >= CONFIG.driver_silence_s - 0.01


def test_a_driver_that_lives_is_served_for_longer_than_its_silence_may_last() -> None:
    def in_cycle(cycle: int, sender: Any, heartbeat: Heartbeat, link: StandInLink) -> None:
        heartbeat.beat()
        if cycle == 60:  # four times the allowed silence, in cycles of 8 ms
            sender.send(("end",))

    _, last, duration_s = run(in_cycle)
    assert last.phase is Phase.ENDED
    assert duration_s > 3 * CONFIG.driver_silence_s


@pytest.mark.parametrize(("command", "most", "least"), [("abort", 0, 0), ("end", 200, 5)])
def test_an_abort_ends_the_stream_at_once_and_an_orderly_end_brakes_along_its_way(
    command: str, most: int, least: int
) -> None:
    """An abort is for a broken limit: the old code braked along the trajectory for up to 1 s."""
    marks: list[int] = []

    def in_cycle(cycle: int, sender: Any, heartbeat: Heartbeat, link: StandInLink) -> None:
        heartbeat.beat()
        if cycle == 5:
            sender.send(("target", 1, FAR))
        if cycle == 30:
            marks.append(len(link.log))
            sender.send(("abort", "too fast") if command == "abort" else ("end",))

    link, last, _ = run(in_cycle)
    after = link.log[marks[0] :].count("servo")
    assert least <= after <= most
    assert last.phase is Phase.ENDED
    assert last.message == ("too fast" if command == "abort" else "asked to end")


@pytest.mark.parametrize("slider", [1.0, 0.2])
def test_poses_are_streamed_as_slowly_as_the_slider_lets_the_arm_move(slider: float) -> None:
    """On the old code the stream knew no slider and ran ahead of the arm."""

    def in_cycle(cycle: int, sender: Any, heartbeat: Heartbeat, link: StandInLink) -> None:
        heartbeat.beat()
        link.slider = slider
        if cycle == 5:
            sender.send(("target", 1, [0.5, 0.05, 0.2, 0.0]))
        if cycle == 100:
            sender.send(("abort", "seen enough"))

    link, _, _ = run(in_cycle)
    assert link.fastest_m_s == pytest.approx(slider * CONFIG.step_speed_m_s, rel=0.05)


def test_on_contact_the_arm_is_told_to_stay_before_the_controller_is_asked_to_brake() -> None:
    """A brake that is taken up late let the arm press on for 6 mm: a protective stop."""

    def in_cycle(cycle: int, sender: Any, heartbeat: Heartbeat, link: StandInLink) -> None:
        heartbeat.beat()
        if cycle == 5:
            sender.send(("target", 1, [0.5, 0.05, 0.2, 0.0]))
        if cycle == 40:
            link.stuck_at = link.pose.copy()
        if cycle == 150:
            sender.send(("abort", "seen enough"))

    link, last, _ = run(in_cycle)
    assert link.log.count("brake") == 1
    assert last.blocked
    np.testing.assert_allclose(link.braked_from, link.stuck_at)
    at = link.log.index("brake")
    assert link.log[at - 1] == "servo"


@pytest.mark.parametrize(
    ("push_n", "aside_m", "follows"), [(60.0, 0.0024, True), (30.0, 0.0012, False)]
)
def test_an_arm_at_rest_follows_what_pushes_it_hard_instead_of_resisting(
    push_n: float, aside_m: float, follows: bool
) -> None:
    """Fingers that close on a fixed block beside them pushed it into a protective stop."""
    sent_s = [math.inf]

    def in_cycle(cycle: int, sender: Any, heartbeat: Heartbeat, link: StandInLink) -> None:
        heartbeat.beat()
        if cycle == 5:
            sender.send(("target", 1, [0.5, 0.004, 0.2, 0.0]))
            sent_s[0] = time.monotonic()
        since_s = time.monotonic() - sent_s[0]
        if 2.0 < since_s < 2.1:  # long after the stream has ended
            link.stuck_at = top_down_pose((0.5, 0.004 + aside_m, 0.2), 0.0)
            link.push_n = push_n
        else:
            link.stuck_at, link.push_n = None, 0.0
        if since_s > 2.3:
            sender.send(("abort", "seen enough"))

    _, last, _ = run(in_cycle)
    assert (last.contacts > 0) is follows
    assert last.commanded[1] == pytest.approx(0.004 + (aside_m if follows else 0.0), abs=1e-6)
    assert not last.blocked
