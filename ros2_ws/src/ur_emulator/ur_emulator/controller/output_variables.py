# SPDX-License-Identifier: MIT
"""The controller's state as RTDE output variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ur_emulator.arms import Arm
from ur_emulator.constants import (
    JOINT_MODE_POWER_OFF,
    JOINT_MODE_RUNNING,
    RobotMode,
    RuntimeState,
)
from ur_emulator.controller import frames
from ur_emulator.controller.motions import TargetState

if TYPE_CHECKING:
    from ur_emulator.controller.controller import Controller


def tcp_variables(target: TargetState, arm: Arm) -> dict[str, list[float]]:
    """Target and measured TCP: pose (6,) and speed (6,) in the controller's base."""
    tcp, kinematics = target.flange_from_tcp, target.kinematics
    measured = kinematics.base_from_tcp(arm.joints_rad, tcp)
    return {
        "actual_TCP_pose": frames.pose_of(measured).tolist(),
        "actual_TCP_speed": (kinematics.jacobian(arm.joints_rad, tcp) @ arm.speeds_rad_s).tolist(),
        "target_TCP_pose": frames.pose_of(target.tcp()).tolist(),
        "target_TCP_speed": (target.jacobian() @ target.speeds_rad_s).tolist(),
    }


def output_variables(controller: Controller) -> dict[str, Any]:
    """Every output variable of this cycle under its RTDE name."""
    zero6 = [0.0] * 6
    powered = controller.safety.robot_mode is RobotMode.RUNNING
    playing = controller.runtime_state is RuntimeState.PLAYING
    joint_mode = JOINT_MODE_RUNNING if powered else JOINT_MODE_POWER_OFF
    values: dict[str, Any] = controller.registers.output_variables()
    values.update(tcp_variables(controller.target, controller.arm))
    values.update(
        timestamp=controller.timestamp_s,
        target_q=controller.target.joints_rad.tolist(),
        target_qd=controller.target.speeds_rad_s.tolist(),
        target_qdd=zero6,
        target_current=zero6,
        target_moment=zero6,
        actual_q=controller.arm.joints_rad.tolist(),
        actual_qd=controller.arm.speeds_rad_s.tolist(),
        actual_qdd=zero6,
        actual_current=zero6,
        actual_moment=zero6,
        joint_control_output=zero6,
        actual_TCP_force=controller.force.wrench.tolist(),
        joint_temperatures=[30.0] * 6,
        actual_joint_voltage=[48.0] * 6,
        payload_inertia=zero6,
        ft_raw_wrench=controller.force.wrench.tolist(),
        actual_tool_accelerometer=[0.0, 0.0, -9.81],
        payload_cog=controller.payload_cog_m.tolist(),
        payload=controller.payload_kg,
        joint_mode=[joint_mode] * 6,
        robot_mode=int(controller.safety.robot_mode),
        safety_mode=int(controller.safety.safety_mode),
        actual_digital_input_bits=0,
        actual_digital_output_bits=controller.registers.digital_outputs,
        runtime_state=int(controller.runtime_state),
        robot_status_bits=int(powered) | int(playing) << 1,
        safety_status_bits=controller.safety.status_bits,
        output_bit_registers0_to_31=0,
        output_bit_registers32_to_63=0,
        actual_execution_time=0.0,
        # The slider is not part of it: drivers multiply the two.
        speed_scaling=controller.scaling().limiter if playing else 0.0,
        target_speed_fraction=controller.registers.speed_slider,
        actual_momentum=0.0,
        actual_main_voltage=48.0,
        actual_robot_voltage=48.0,
        actual_robot_current=0.5,
        standard_analog_input0=0.0,
        standard_analog_input1=0.0,
        standard_analog_output0=0.0,
        standard_analog_output1=0.0,
    )
    return values


def row_of(controller: Controller, now_s: float, offset: int) -> tuple[object, ...]:
    """One row of the recorder: `FIELDS` of this cycle.

    Args:
        controller: after its cycle.
        now_s: monotonic time.
        offset: first register of the running program.
    """
    variables = tcp_variables(controller.target, controller.arm)
    registers = controller.registers
    return (
        now_s,
        controller.timestamp_s,
        int(controller.runtime_state),
        int(controller.safety.safety_mode),
        registers.input_ints[offset],
        now_s - registers.input_int_written_s[offset],
        registers.input_doubles[offset : offset + 6],
        controller.target.joints_rad,
        controller.arm.joints_rad,
        variables["target_TCP_pose"],
        variables["actual_TCP_pose"],
        variables["actual_TCP_speed"],
    )
