# SPDX-License-Identifier: MIT
"""Diagnostics messages with one status, as every node here publishes them."""

from __future__ import annotations

from collections.abc import Mapping

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Header

PERIOD_S = 1.0
"""How often a node publishes its diagnostics [s]."""


def diagnostics(
    stamp: Time,
    name: str,
    message: str,
    values: Mapping[str, str],
    *,
    level: bytes = DiagnosticStatus.OK,
    hardware_id: str = "",
) -> DiagnosticArray:
    """One status: who (`name`), how it is (`level`, `message`), and its values by name."""
    status = DiagnosticStatus(
        level=level,
        name=name,
        message=message,
        hardware_id=hardware_id,
        values=[KeyValue(key=key, value=value) for key, value in values.items()],
    )
    return DiagnosticArray(header=Header(stamp=stamp), status=[status])
