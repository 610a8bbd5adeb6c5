# SPDX-License-Identifier: MIT
"""The law of contact (`equi_core.motion.contact_law`), fed with a controller's readings."""

from __future__ import annotations

import numpy as np

from equi_control.rtde.robot_reading import Reading
from equi_control.servo.config import ServoConfig
from equi_core.motion.contact_law import ContactLaw


class ContactMonitor(ContactLaw):
    """Sees every reading; asked while the arm is under way."""

    def __init__(self, config: ServoConfig, period_s: float) -> None:
        super().__init__(config.contact_limits, period_s)

    def see(self, reading: Reading) -> None:
        """Take the force of a new cycle."""
        self.see_force(reading.wrench[:3])

    def contact(self, reading: Reading) -> str:
        """What shows contact in this cycle, in words; empty if nothing does."""
        lag = reading.base_link_from_target_tcp[:3, 3] - reading.base_link_from_tcp[:3, 3]
        return self.contact_at(float(np.linalg.norm(lag)))
