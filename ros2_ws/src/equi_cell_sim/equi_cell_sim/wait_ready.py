# SPDX-License-Identifier: MIT
"""Waits until the emulated controller answers; ends with code 0 then, 1 if it never does.

    ros2 run equi_cell_sim wait_ready --address 127.0.0.2 --timeout 60

The launch starts the driver when this ends, so the driver finds a robot at once.
"""

from __future__ import annotations

import argparse
import sys
import time

from ur_emulator.client import EmulatorClient


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--address", default="127.0.0.2", help="loopback address of the robot")
    parser.add_argument("--timeout", type=float, default=60.0, help="give up after this long [s]")
    parsed = parser.parse_args(arguments)
    deadline_s = time.monotonic() + parsed.timeout
    while time.monotonic() < deadline_s:
        try:
            with EmulatorClient(parsed.address, timeout_s=2.0) as cell:
                cell.status()
            return 0
        except (OSError, ValueError):
            time.sleep(0.1)
    sys.stderr.write(f"no emulated robot at {parsed.address} within {parsed.timeout:g} s\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
