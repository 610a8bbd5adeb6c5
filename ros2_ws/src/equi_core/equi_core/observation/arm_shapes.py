# SPDX-License-Identifier: MIT
"""Thickness of the arms' links: what `robot_shape` adds to the Denavit-Hartenberg lengths.

Fitted to the meshes that Universal Robots publishes (ur_description 2.4.5): with a margin of 6 mm
they are covered, but for the plug on the foot of a CB3. The UR5's are older, those of the simulated
arm; of its mesh the back of wrist 1 stands out by up to 12 mm. Tubes run beside the joint axes, so
the lengths alone do not place them.
"""

from __future__ import annotations

from dataclasses import dataclass

from equi_core.motion.arm_models import ArmModel


@dataclass(frozen=True)
class ArmShape:
    """Radii, and distances along the joints' z axes [m]."""

    base_radius_m: float
    shoulder_radius_m: float
    shoulder_top_m: float
    """Up from the shoulder's axis."""
    shoulder_end_m: float
    """From the base's axis along the shoulder's."""
    upper_arm_offset_m: float
    upper_arm_radius_m: float
    elbow_radius_m: float
    elbow_low_m: float
    elbow_high_m: float
    forearm_offset_m: float
    forearm_radius_m: float
    wrist_radius_m: float
    wrist_overhang_m: float
    wrist_start_m: float
    """From the forearm's end along wrist 1's axis."""
    wrist_back_m: float
    """From wrist 1 backwards along wrist 2's axis."""


ARM_SHAPES = {
    "ur3": ArmShape(
        base_radius_m=0.067,
        shoulder_radius_m=0.048,
        shoulder_top_m=0.002,
        shoulder_end_m=0.148,
        upper_arm_offset_m=0.1198,
        upper_arm_radius_m=0.04,
        elbow_radius_m=0.041,
        elbow_low_m=0.037,
        elbow_high_m=0.153,
        forearm_offset_m=0.0275,
        forearm_radius_m=0.03,
        wrist_radius_m=0.035,
        wrist_overhang_m=0.018,
        wrist_start_m=0.0,
        wrist_back_m=0.018,
    ),
    "ur5": ArmShape(
        base_radius_m=0.078,
        shoulder_radius_m=0.061,
        shoulder_top_m=0.04,
        shoulder_end_m=0.206,
        upper_arm_offset_m=0.13585,
        upper_arm_radius_m=0.055,
        elbow_radius_m=0.056,
        elbow_low_m=-0.047,
        elbow_high_m=0.194,
        forearm_offset_m=0.0165,
        forearm_radius_m=0.045,
        wrist_radius_m=0.046,
        wrist_overhang_m=0.06,
        wrist_start_m=-0.035,
        wrist_back_m=0.0,
    ),
    "ur10": ArmShape(
        base_radius_m=0.077,
        shoulder_radius_m=0.078,
        shoulder_top_m=0.052,
        shoulder_end_m=0.225,
        upper_arm_offset_m=0.1755,
        upper_arm_radius_m=0.071,
        elbow_radius_m=0.068,
        elbow_low_m=0.023,
        elbow_high_m=0.207,
        forearm_offset_m=0.049042,
        forearm_radius_m=0.054,
        wrist_radius_m=0.05,
        wrist_overhang_m=0.024,
        wrist_start_m=0.0,
        wrist_back_m=0.024,
    ),
    "ur3e": ArmShape(
        base_radius_m=0.067,
        shoulder_radius_m=0.05,
        shoulder_top_m=0.002,
        shoulder_end_m=0.147,
        upper_arm_offset_m=0.12,
        upper_arm_radius_m=0.04,
        elbow_radius_m=0.042,
        elbow_low_m=0.037,
        elbow_high_m=0.151,
        forearm_offset_m=0.027,
        forearm_radius_m=0.03,
        wrist_radius_m=0.035,
        wrist_overhang_m=0.016,
        wrist_start_m=0.0,
        wrist_back_m=0.016,
    ),
    "ur5e": ArmShape(
        base_radius_m=0.078,
        shoulder_radius_m=0.063,
        shoulder_top_m=0.01,
        shoulder_end_m=0.173,
        upper_arm_offset_m=0.138,
        upper_arm_radius_m=0.053,
        elbow_radius_m=0.063,
        elbow_low_m=0.01,
        elbow_high_m=0.171,
        forearm_offset_m=0.007,
        forearm_radius_m=0.043,
        wrist_radius_m=0.042,
        wrist_overhang_m=0.024,
        wrist_start_m=-0.016,
        wrist_back_m=0.024,
    ),
    "ur10e": ArmShape(
        base_radius_m=0.097,
        shoulder_radius_m=0.079,
        shoulder_top_m=0.02,
        shoulder_end_m=0.23,
        upper_arm_offset_m=0.1762,
        upper_arm_radius_m=0.07,
        elbow_radius_m=0.064,
        elbow_low_m=0.038,
        elbow_high_m=0.21,
        forearm_offset_m=0.0393,
        forearm_radius_m=0.054,
        wrist_radius_m=0.05,
        wrist_overhang_m=0.022,
        wrist_start_m=0.0,
        wrist_back_m=0.022,
    ),
}
"""By the names of `ARM_MODELS`."""


def arm_shape(arm: ArmModel) -> ArmShape:
    """The links' thickness of an arm."""
    return ARM_SHAPES[arm.name]
