# SPDX-License-Identifier: MIT
"""The network: whether the controller is reachable, answers fast, and keeps its period.

The round trip is one of TCP (a question to the dashboard): ICMP needs rights, and says nothing of
the controller's software.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from equi_control.doctor.finding import Finding, fail, ok, warn
from equi_control.rtde.dashboard import Dashboard
from equi_control.rtde.rtde_session import RtdeSample

_QUESTIONS = 20
_SLOW_ROUND_TRIP_S = 0.005
_WORST_ROUND_TRIP_S = 0.030
_LATE_PERIODS = 3.0
"""A gap of so many periods between two packages is worth a word."""
_WIRING = "use a cable to the controller's own port, no Wi-Fi, no switch under other load"


def address_problem(host: str) -> str:
    """Why an address cannot be a robot's; empty if it can. One sentence."""
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return (
            f"'{host}' is neither an IP address nor a known host name; read the robot's address on "
            "the pendant (Settings, Network) and give it as --robot-ip 192.168.1.10"
        )
    return ""


def check_round_trip(dashboard: Dashboard) -> Finding:
    """Round trip of a question to the dashboard, and how much it varies."""
    times_s = []
    for _ in range(_QUESTIONS):
        begun_s = time.monotonic()
        dashboard.ask("running")
        times_s.append(time.monotonic() - begun_s)
    typical_s, worst_s = median(times_s), max(times_s)
    found = f"{1e3 * typical_s:.1f} ms, worst {1e3 * worst_s:.1f} ms of {_QUESTIONS}"
    if worst_s > _WORST_ROUND_TRIP_S:
        return fail("round trip", f"{found} (at most {1e3 * _WORST_ROUND_TRIP_S:.0f} ms)", _WIRING)
    if typical_s > _SLOW_ROUND_TRIP_S:
        return warn("round trip", f"{found} ({1e3 * _SLOW_ROUND_TRIP_S:.0f} ms is usual)", _WIRING)
    return ok("round trip", found)


def check_stream(samples: Sequence[RtdeSample]) -> Finding:
    """Whether RTDE packages come at the controller's rate: losses and jitter."""
    if len(samples) < 10:
        return fail("RTDE stream", f"{len(samples)} packages", "restart the controller")
    clock_s = [float(sample.values["timestamp"]) for sample in samples]
    steps_s = sorted(b - a for a, b in pairwise(clock_s))
    period_s = 0.002 if steps_s[0] < 0.004 else 0.008
    lost = round((clock_s[-1] - clock_s[0]) / period_s) - (len(samples) - 1)
    arrived_s = [sample.arrived_s for sample in samples]
    gaps_s = sorted(b - a for a, b in pairwise(arrived_s))
    late_s = gaps_s[int(0.99 * (len(gaps_s) - 1))]
    found = (
        f"{1 / period_s:.0f} Hz, {lost} of {len(samples) + lost} lost, 99 % of gaps below "
        f"{1e3 * late_s:.1f} ms, longest {1e3 * gaps_s[-1]:.0f} ms"
    )
    if lost > 0.02 * len(samples):
        return fail("RTDE stream", found, _WIRING)
    if late_s > _LATE_PERIODS * period_s:
        return warn("RTDE stream", found, f"{_WIRING}; free this computer of other work")
    return ok("RTDE stream", found)
