# SPDX-License-Identifier: MIT
"""Shadow mode on the whole simulated cell: the policy acts on live cameras, and nothing moves.

Judged by the emulated controller's own recording, not by what the driver says of itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from families import wait_until
from ros_probe import RosProbe

from ur_emulator.client import EmulatorClient

pytestmark = [pytest.mark.slow, pytest.mark.ros]

EPISODES = int(os.environ.get("EQUI_SHADOW_EPISODES", "2"))
STEPS = 6


def test_the_policy_runs_and_no_motion_command_reaches_the_controller(
    ros_launch: Callable[..., Any],
    ros_probe: RosProbe,
    loopback_address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from equi_interfaces.action import RunEpisode
    from equi_interfaces.msg import ExecutedCommand
    from rclpy.action import ActionClient

    from equi_ros import qos

    monkeypatch.setenv("ROS_HOME", str(tmp_path / "ros"))
    launched = ros_launch(
        *("equi_policy", "sim2real.launch.py"),
        **{"task": "block_picking", "mode": "shadow", "robot_ip": loopback_address},
    )
    launched.wait_for_text("every node is up", 150.0)
    reports: list[Any] = []
    ros_probe.node.create_subscription(
        ExecutedCommand, "/executed_command", reports.append, qos.EXECUTED
    )
    client = ActionClient(ros_probe.node, RunEpisode, "/policy/run_episode")
    wait_until(client.server_is_ready, 60.0, "the policy's action")
    emulator = EmulatorClient(loopback_address)
    before = emulator.status()
    emulator.request("record_start")
    steps = 0
    for number in range(EPISODES):
        goal = RunEpisode.Goal(episode_id=f"shadow-{number}", max_steps=STEPS, seed=number)
        accepted = client.send_goal_async(goal)
        wait_until(accepted.done, 30.0, "the goal to be taken")
        assert accepted.result().accepted
        ended = accepted.result().get_result_async()
        wait_until(ended.done, 120.0, f"the end of episode {number}")
        result = ended.result().result
        assert result.outcome == RunEpisode.Result.STEP_LIMIT, result.reason
        steps += result.steps
    rows_file = tmp_path / "rows.npy"
    emulator.request("record_save", path=str(rows_file))
    rows, after = np.load(rows_file), emulator.status()
    emulator.close()
    assert steps == EPISODES * STEPS
    assert len(reports) == steps
    assert all(report.reasons[0].startswith("shadow: would step by") for report in reports)
    assert any(
        abs(report.target_pose.position.z - report.end_pose.position.z) > 0.01 for report in reports
    ), "the policy wants to move"
    # The recorder saw everything: from before the first step on, without a gap or an overflow.
    assert np.diff(rows["timestamp_s"]).max() < 0.1
    assert np.ptp(rows["timestamp_s"]) > steps * 0.1
    motion_commands = np.count_nonzero(rows["command"])
    sys.stdout.write(
        f"{EPISODES} episodes, {steps} steps, {len(rows)} controller cycles over "
        f"{np.ptp(rows['timestamp_s']):.0f} s: {motion_commands} motion commands\n"
    )
    assert motion_commands == 0
    # Gravity and contact may move an arm that is only held by its brakes by micrometres.
    assert np.ptp(rows["target_q"], axis=0).max() == 0.0
    assert np.ptp(rows["actual_q"], axis=0).max() < 1e-3
    assert after["gripper_opening_m"] == pytest.approx(before["gripper_opening_m"], abs=1e-4)
    evidence = list((tmp_path / "ros").rglob("shadow.json"))
    assert len(evidence) == 1
    assert f'"clean_steps": {steps}' in evidence[0].read_text()
