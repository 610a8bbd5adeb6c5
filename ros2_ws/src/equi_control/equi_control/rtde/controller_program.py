# SPDX-License-Identifier: MIT
"""What the dashboard is needed for: which arm stands there, and the end of a paused program."""

from __future__ import annotations

import re

from equi_control.rtde.dashboard import Dashboard, DashboardError
from equi_core.motion.arm_models import model_of_controller

_STOPPED = "Stopped"
_STOP_TIMEOUT_S = 0.5


def robot_model(host: str) -> str:
    """Name of the arm at an address, as `arm_models` spells it, or the controller's own words.

    Raises:
        DashboardError: the dashboard does not say.
    """
    with Dashboard(host) as dashboard:
        name = dashboard.ask("get robot model")
        version = dashboard.ask("PolyscopeVersion")
    found = re.search(r"(\d+)\.\d+", version)
    if not name or found is None:
        raise DashboardError(
            f"the dashboard of {host} answers '{name}' to 'get robot model' and '{version}' to "
            "'PolyscopeVersion'; a model and a version were expected"
        )
    return model_of_controller(name, int(found.group(1)))


def stop_program(host: str) -> bool:
    """End whatever program is loaded, also a paused one; whether the controller says it did."""
    try:
        with Dashboard(host, timeout_s=_STOP_TIMEOUT_S) as dashboard:
            return dashboard.ask("stop") == _STOPPED
    except DashboardError:
        return False
