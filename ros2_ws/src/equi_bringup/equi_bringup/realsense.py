# SPDX-License-Identifier: MIT
"""Parameters of realsense2_camera for the cameras of a cell. Not verified on hardware."""

from __future__ import annotations

from typing import Any

from equi_bringup.arguments import ArgumentError

PACKAGE = "realsense2_camera"
EXECUTABLE = "realsense2_camera_node"


def realsense_parameters(camera: str, serial: str, frame_prefix: str = "") -> dict[str, Any]:
    """What a camera of that name needs: clouds at 640 x 480, the infrared image for calibration.

    Raises:
        ArgumentError: without a serial number two cameras could be exchanged.
    """
    if serial in ("", "any"):
        raise ArgumentError(
            f"cameras:=realsense needs the serial number of {camera} (on its label): "
            f"cell.{camera}.serial in the cell file"
        )
    return {
        "camera_name": frame_prefix + camera,  # the beginning of its frames; topics follow the node
        # The driver takes off the underscore, which keeps the number a text on its way there.
        "serial_no": f"_{serial}",
        "depth_module.depth_profile": "640x480x30",
        "enable_infra1": True,
        "pointcloud.enable": True,
        # Perception publishes the calibrated frames; a frame has one parent.
        "publish_tf": False,
    }
