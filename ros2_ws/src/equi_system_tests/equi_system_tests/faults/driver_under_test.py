# SPDX-License-Identifier: MIT
"""A driver in a process of its own that moves back and forth until it is killed.

Prints one JSON line with its process id and that of its servo process once it moves.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

from equi_control.driver.config import DriverConfig
from equi_control.driver.driver import Driver, Refused
from equi_control.driver.state import DriverState
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig
from equi_core.motion.safety import StepCommand
from equi_system_tests.faults.rig import FASTEST_STEP_M_S, SIM_LINK


def main(arguments: list[str]) -> int:
    """Drive the robot at the given address until killed."""
    # As fast as the limits allow: the worst case.
    link = LinkConfig(arguments[0], lookahead_s=SIM_LINK["lookahead_s"], gain=SIM_LINK["gain"])
    servo = ServoConfig(link, step_speed_m_s=FASTEST_STEP_M_S)
    driver = Driver(DriverConfig(servo, use_gripper=False, connect_timeout_s=120.0))
    driver.connect()
    announced = False
    step = 0
    while driver.state is not DriverState.FAULT:
        driver.poll()
        if driver.state is DriverState.IDLE:
            with contextlib.suppress(Refused):  # not connected yet: try again
                driver.activate()
        elif driver.state is DriverState.HOLD:
            if step == 0:
                driver.begin_episode("back and forth")
            sign = 1.0 if step % 2 else -1.0
            driver.submit(
                StepCommand("back and forth", step, 0.0, (0.05 * sign, -0.05 * sign, 0.0), 0.0, 0.0)
            )
            step += 1
        if step > 1 and not announced:
            announced = True
            sys.stdout.write(json.dumps({"driver": os.getpid(), "servo": driver.servo_pid}) + "\n")
            sys.stdout.flush()
        time.sleep(0.004)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
