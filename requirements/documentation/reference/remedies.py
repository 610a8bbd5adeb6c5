# SPDX-License-Identifier: MIT
"""What codes mean and what to do about them, where the program that prints them does not say it.

Keys are the published codes; a test holds them to the enumerations.
"""

from __future__ import annotations

from typing import Any

_CLOCK = (
    "synchronise the clocks of the machines (chrony or PTP); look at the camera driver's stamps"
)
_POLICY = "look at the log of the policy; it means a defect of a policy node, not of the robot"

REMEDIES: dict[str, dict[str, Any]] = {
    # Added to the driver's own advice.
    "FaultCode": {
        "CONNECTION_LOST": "only one RTDE client may be connected: end every other one",
        "PROTECTIVE_STOP": "do not press play: a paused program continues what it was doing",
        "ROBOT_NOT_RUNNING": "e-Series: switch to remote control; never jog while the driver is "
        "connected",
        "WATCHDOG": "allow real-time priority (first power-up, step 2)",
        "LIMIT_VIOLATED": "check mounting, TCP and `geometry` of the cell file before you reset",
    },
    "Reason": {
        "malformed": ("the action is not five numbers", _POLICY),
        "not_finite": ("NaN or infinity in the action", _POLICY),
        "stale_command": (
            "the command, or the observation behind it, is too old",
            "find what is slow: computer, cameras, policy; `max_command_observation_age_s`",
        ),
        "future_command": ("the command is stamped in the future", _CLOCK),
        "out_of_order": (
            "a command of another episode, repeated, or not the next one",
            "end a second policy node; start a new episode",
        ),
        "stale_state": ("the robot's state is too old", "check load and network of the controller"),
        "state_not_finite": (
            "NaN in the robot's state",
            "restart the driver; report it if it stays",
        ),
        "tracking_error": (
            "the arm is too far from where it was commanded to be",
            "look for contact; check payload, TCP and the speed slider",
        ),
        "outside_workspace": (
            "the arm is outside the box, so no step from there is taken",
            "jog the arm back into the box with the driver ended, or send `go_home`",
        ),
        "closedness_clipped": ("the gripper command was limited to its range", "none needed"),
        "step_clipped": ("the step was limited to its largest length", "none needed"),
        "yaw_step_clipped": ("the rotation was limited to its largest step", "none needed"),
        "workspace_clipped": (
            "the target was moved back to the edge of the workspace",
            "none needed",
        ),
        "yaw_from_start_clipped": (
            "the gripper may turn by half a turn from where the episode began",
            "none needed",
        ),
        "yaw_range_clipped": ("the wrist would have left its range", "none needed"),
        "speed_limited": (
            "the step takes longer than its period allows at the speed limit",
            "none needed",
        ),
        "joint_limit": (
            "a joint would have left its range or turned too fast",
            "if it comes often: check `geometry` and where the table is",
        ),
    },
    "Cause": {
        "cloud_missing": (
            "no cloud has arrived from this camera",
            "`ros2 topic hz <topic>`; check cable, driver, and `topic` in the cell file",
        ),
        "cloud_stale": (
            "the newest cloud is too old",
            "check the camera's rate and the load; `max_cloud_age_s` of `depth_fusion`",
        ),
        "cloud_future": ("the cloud is stamped in the future", _CLOCK),
        "cloud_skew": (
            "the two clouds were taken too far apart in time",
            f"raise the cameras' rate, or {_CLOCK}",
        ),
        "cloud_before_rest": (
            "the cloud was taken while the arm still moved",
            "none needed: the next cloud will do; if it stays, the camera's stamps are late",
        ),
        "cloud_unreadable": (
            "the cloud has no x, y, z of type float32, or cannot be read",
            "use an organised or plain `PointCloud2` in metres; the message names the field",
        ),
        "cloud_empty": (
            "no point of the cloud lies in the workspace",
            "check the calibration and what the camera looks at",
        ),
        "robot_missing": (
            "no robot state has arrived",
            "is the driver configured? `ros2 lifecycle get /rtde_driver`",
        ),
        "robot_stale": ("the newest robot state is too old", "check the driver's log and the load"),
        "robot_moving": ("the arm is moving", "none needed: observations are made at rest"),
        "robot_future": ("the robot state is stamped in the future", _CLOCK),
        "foreign_publisher": (
            "a second or unexpected publisher on a stream",
            "end it; the message names both nodes (security page)",
        ),
        "goal_missing": (
            "the task needs a goal and the episode has none",
            "give the episode a goal: `has_goal` and `goal_position`, or a scene of `scenes.json`",
        ),
    },
    "Refusal": {
        "no_episode": ("no episode is running", "start one: action `policy/run_episode`"),
        "foreign_episode": ("the observation belongs to another episode", "none needed"),
        "foreign_contract": (
            "perception and policy have loaded different models",
            "start both with the same `model:=`",
        ),
        "stale": (
            "the observation is too old",
            "find what is slow; `max_observation_age_s` of `policy`",
        ),
        "future": ("the observation is stamped in the future", _CLOCK),
        "repeated": ("this observation was acted on already", "none needed: expected"),
        "awaiting_execution": ("the last command is still being executed", "none needed: expected"),
        "skipped": ("a step is missing between two observations", "start a new episode"),
        "before_execution": (
            "the observation was taken before the last step ended",
            "none needed: the next one will do",
        ),
        "malformed": (
            "shape or values of the image are not those of the contract",
            "start perception and policy with the same model",
        ),
        "bad_action": (
            "the network gave NaN or a wrong shape",
            "check the model: `equi-models verify`",
        ),
        "finished": ("the episode has ended", "start another one"),
    },
}
