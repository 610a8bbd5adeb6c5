# SPDX-License-Identifier: MIT
"""Driver data -> ROS messages: conversions only, no decisions."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus
from equi_interfaces.msg import (
    DriverState as DriverStateMsg,
)
from equi_interfaces.msg import (
    ExecutedCommand,
    RobotState,
    SafetyStatus,
)
from equi_interfaces.msg import (
    FaultCode as FaultCodeMsg,
)
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Vector3
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from equi_control.driver.state import DriverState, FaultCode
from equi_control.driver.steps import StepReport
from equi_control.promotion.driver_stage import AnyDriver
from equi_control.servo.shared_state import ServoState
from equi_core.geometry import quaternion_xyzw, yaw_of
from equi_core.motion.ur5_kinematics import JOINT_NAMES
from equi_core.robot_description.urdf import FINGER_JOINT, finger_position_m
from equi_ros.diagnostics import Health

_LEVELS = {
    DriverState.IDLE: DiagnosticStatus.OK,
    DriverState.ACTIVE: DiagnosticStatus.OK,
    DriverState.HOLD: DiagnosticStatus.OK,
    DriverState.PAUSED: DiagnosticStatus.WARN,
    DriverState.FAULT: DiagnosticStatus.ERROR,
}


def pose_message(task_from_tcp: NDArray[np.float64]) -> Pose:
    """A pose (4, 4) as message."""
    x, y, z = (float(value) for value in task_from_tcp[:3, 3])
    qx, qy, qz, qw = (float(value) for value in quaternion_xyzw(task_from_tcp[:3, :3]))
    return Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw))


def robot_state(driver: AnyDriver, stamp: Time, frame_id: str) -> RobotState | None:
    """Measured state in the task frame, or None before the first contact with the robot."""
    servo = driver.servo_state
    if servo is None or not servo.has_measured:
        return None
    message = RobotState(header=Header(stamp=stamp, frame_id=frame_id))
    message.state = DriverStateMsg(value=int(driver.state))
    message.moving = driver.moving
    message.episode_id = driver.episode_id
    message.executed_steps = driver.executed_steps
    message.tcp_pose = pose_message(servo.task_from_tcp)
    message.tcp_yaw_rad = float(yaw_of(servo.task_from_tcp))
    message.tcp_twist.linear = _vector(servo.twist[:3])
    message.tcp_twist.angular = _vector(servo.twist[3:])
    message.tcp_wrench.force = _vector(servo.wrench[:3])
    message.tcp_wrench.torque = _vector(servo.wrench[3:])
    message.joint_positions = servo.joints_rad
    message.joint_velocities = servo.joint_speeds_rad_s
    gripper = driver.gripper_report
    message.gripper_opening = float(gripper.opening)
    message.holding = gripper.holding
    message.gripper_connected = gripper.connected
    return message


def joint_state(servo: ServoState, gripper_opening: float, stamp: Time) -> JointState:
    """The six arm joints and the gripper's finger joint, whose speed is not measured.

    Args:
        servo: measured state of the arm.
        gripper_opening: 0 closed to 1 open; anything else is not known and left out.
        stamp: when.
    """
    known = 0.0 <= gripper_opening <= 1.0
    finger = [finger_position_m(gripper_opening)] if known else []
    return JointState(
        header=Header(stamp=stamp),
        name=[*JOINT_NAMES, *([FINGER_JOINT] if known else [])],
        position=[*(float(value) for value in servo.joints_rad), *finger],
        velocity=[*(float(value) for value in servo.joint_speeds_rad_s), *([0.0] * known)],
    )


def tcp_pose(servo: ServoState, stamp: Time, frame_id: str) -> PoseStamped:
    """Measured TCP in the task frame, whose name is `frame_id`."""
    return PoseStamped(
        header=Header(stamp=stamp, frame_id=frame_id), pose=pose_message(servo.task_from_tcp)
    )


def safety_status(driver: AnyDriver, stamp: Time, frame_id: str) -> SafetyStatus:
    """State and latched fault with what the operator should do."""
    fault = driver.fault
    reasons = [fault.reason] if fault else []
    if driver.notice:
        reasons.append(driver.notice)
    servo = driver.servo_state if driver.servo_state and driver.servo_state.has_measured else None
    return SafetyStatus(
        header=Header(stamp=stamp, frame_id=frame_id),
        state=DriverStateMsg(value=int(driver.state)),
        fault=FaultCodeMsg(value=int(fault.code if fault else FaultCode.NONE)),
        fault_count=driver.fault_count,
        reasons=reasons,
        operator_action=fault.operator_action if fault else "",
        robot_mode=servo.robot_mode if servo else -1,
        safety_mode=servo.safety_mode if servo else -1,
        speed_slider=servo.speed_slider if servo else 1.0,
        speed_scaling=servo.speed_scaling if servo else 1.0,
        episode_id=driver.episode_id,
    )


def executed_command(
    report: StepReport, stamps: tuple[Time, Time, Time], frame_id: str
) -> ExecutedCommand:
    """What became of a step; `stamps` are its end, its receipt and the start of its motion."""
    x, y, z = report.executed.step_m
    return ExecutedCommand(
        header=Header(stamp=stamps[0], frame_id=frame_id),
        requested=report.command.tag,
        received_stamp=stamps[1],
        motion_start_stamp=stamps[2],
        outcome=int(report.outcome),
        reasons=list(report.reasons),
        gripper_closedness=float(report.executed.closedness),
        translation=Vector3(x=x, y=y, z=z),
        yaw_rad=float(report.executed.yaw_rad),
        start_pose=pose_message(report.start_pose),
        target_pose=pose_message(report.target_pose),
        end_pose=pose_message(report.end_pose),
        gripper_opening=float(report.opening),
        holding=report.holding,
    )


def health(driver: AnyDriver) -> Health:
    """Health of driver, servo stream and gripper."""
    servo, gripper, fault = driver.servo_state, driver.gripper_report, driver.fault
    values = {"gripper": "connected" if gripper.connected else gripper.reason}
    if servo is not None:
        values.update(
            servo_cycles=str(servo.cycles),
            late_cycles=str(servo.late_cycles),
            repeated_cycles=str(servo.repeated_cycles),
            worst_gap_ms=f"{servo.worst_gap_s * 1e3:.1f}",
            guard_trips=str(servo.guard_trips),
            contacts=str(servo.contacts),
            speed_slider=f"{servo.speed_slider:.2f}",
            speed_scaling=f"{servo.speed_scaling:.2f}",
        )
    text = fault.reason if fault else driver.notice or driver.state.name
    return Health(text, values, _LEVELS[driver.state])


def _vector(values: NDArray[np.float64]) -> Vector3:
    x, y, z = (float(value) for value in values)
    return Vector3(x=x, y=y, z=z)
