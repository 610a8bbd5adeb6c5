# SPDX-License-Identifier: MIT
"""Everything that the arm must obey, as numbers: what a step must obey, speeds, ages, distances."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from equi_core.contract import ActionSpec, Workspace
from equi_core.step_limits import LimitsError, StepLimits


@dataclass(frozen=True)
class SafetyLimits(StepLimits):
    """Everything the arm must obey. Defaults suit a UR5 beside people who keep their distance."""

    yaw_range_rad: float = 1.25 * math.pi
    """Commanded yaw stays within plus or minus this, so that wrist 3 never winds up [rad]."""
    max_speed_m_s: float = 0.25
    """Cap on the length of the TCP velocity: the reduced speed of ISO 10218-1 [m/s]."""
    max_acceleration_m_s2: float = 1.5
    max_jerk_m_s3: float = 30.0
    max_yaw_rate_rad_s: float = 1.5
    max_yaw_acceleration_rad_s2: float = 8.0
    max_yaw_jerk_rad_s3: float = 100.0
    max_command_age_s: float = 0.25
    """An older command is refused: the world it was meant for is gone."""
    max_state_age_s: float = 0.1
    """With an older robot state nothing is known about the arm; hold."""
    max_tracking_error_m: float = 0.04
    """Commanded and measured TCP may differ by this much; more means that the arm is blocked."""
    max_outside_m: float = 0.02
    """An arm further outside the box than this, or than one step, is not led back by itself [m]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if spec.name != "workspace" and not math.isfinite(value):
                raise LimitsError(f"limit '{spec.name}' is {value}; it must be a positive number")

    def stricter_of(self, other: SafetyLimits) -> SafetyLimits:
        """The limits that satisfy both: the smaller number everywhere, the common box."""
        box = {}
        for axis in "xyz":
            low = max(getattr(limits.workspace, f"{axis}_min_m") for limits in (self, other))
            high = min(getattr(limits.workspace, f"{axis}_max_m") for limits in (self, other))
            if not low < high:
                raise LimitsError(
                    f"the two workspaces have no common {axis} range "
                    f"({low} to {high} m); correct the cell's parameter file or use another policy"
                )
            box[f"{axis}_min_m"], box[f"{axis}_max_m"] = low, high
        smaller = {
            spec.name: min(getattr(self, spec.name), getattr(other, spec.name))
            for spec in dataclasses.fields(self)
            if spec.name != "workspace"
        }
        return SafetyLimits(workspace=Workspace(**box), **smaller)

    def within_contract(self, action: ActionSpec, workspace: Workspace) -> SafetyLimits:
        """These limits, tightened by what the policy's contract promises."""
        return self.stricter_of(
            dataclasses.replace(
                self,
                workspace=workspace,
                max_step_m=action.max_step_m,
                max_yaw_step_rad=action.max_yaw_step_rad,
            )
        )
