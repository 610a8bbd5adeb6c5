# SPDX-License-Identifier: MIT
"""print_urdf: writes the URDF of an arm with the 2F-85, for tools that read a file.

ros2 run equi_description print_urdf --model ur5e > ur5e.urdf
"""

from __future__ import annotations

import argparse
import sys

from equi_core.cell_geometry import CellGeometry, GeometryRangeError
from equi_core.motion.arm_models import ARM_MODELS, arm_model
from equi_core.robot_description.urdf import robot_description


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        prog="print_urdf", description="Write the URDF of an arm with the 2F-85 to stdout."
    )
    parser.add_argument("--model", default="ur5", choices=sorted(ARM_MODELS))
    parser.add_argument("--tool-yaw-rad", type=float, default=0.0, help="mounting of the gripper")
    parser.add_argument("--tcp-from-flange-m", type=float, default=CellGeometry().tcp_from_flange_m)
    options = parser.parse_args(arguments)
    try:
        geometry = CellGeometry(
            tool_yaw_rad=options.tool_yaw_rad, tcp_from_flange_m=options.tcp_from_flange_m
        )
    except GeometryRangeError as error:
        parser.error(str(error))
    sys.stdout.write(robot_description(arm_model(options.model), geometry))
    return 0


if __name__ == "__main__":
    sys.exit(main())
