# SPDX-License-Identifier: MIT
"""scene_node: arranges the simulated scene of an episode and checks success by ground truth.

    ros2 run equi_cell_sim scene_node --ros-args -p robot_ip:=127.0.0.2 -p task:=block_picking

Offers `~/reset_episode` (draws the scene of a seed as training does, and sets it up around the
resting arm) and `~/check_success` (std_srvs/Trigger: success = the task is done; otherwise a
message that is not empty says why it cannot be done any more).
"""

from __future__ import annotations

import json
import sys

from equi_interfaces.srv import ResetEpisode
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from equi_cell_sim.ground_truth import GroundTruth
from equi_cell_sim.scene_data import SceneDataError, read_state, scene_request
from equi_ros import qos
from equi_ros.parameters import declare
from equi_ros.run_node import run_node
from ur_emulator.client import EmulatorClient


class SceneNode(Node):
    """Thin: services over `GroundTruth` and the emulator's control API."""

    def __init__(self) -> None:
        super().__init__("simulated_scene")
        self._address = str(declare(self, "robot_ip", "127.0.0.2", "address of the emulated robot"))
        task = str(declare(self, "task", "block_picking", "task whose scenes are arranged"))
        self._tasks = {task: GroundTruth(task)}
        self._task = task
        self._episode: dict[str, object] = {}
        self._truth = self.create_publisher(String, "~/ground_truth", qos.LATCHED)
        self.create_service(ResetEpisode, "~/reset_episode", self._on_reset)
        self.create_service(Trigger, "~/check_success", self._on_check_success)
        self.get_logger().info(f"ready: task {task}, emulator at {self._address}")

    def _on_reset(
        self, request: ResetEpisode.Request, response: ResetEpisode.Response
    ) -> ResetEpisode.Response:
        task = request.task or self._task
        try:
            if task not in self._tasks:
                self._tasks[task] = GroundTruth(task)
            truth = self._tasks[task]
            scene = truth.scene(int(request.seed))
            with EmulatorClient(self._address) as cell:
                cell.request("set_scene", scene=scene_request(scene))
            truth.begin(scene)
        except (OSError, ValueError, RuntimeError) as error:
            response.accepted, response.message = False, f"{type(error).__name__}: {error}"
            return response
        self._task = task
        self._episode = {
            "episode_id": request.episode_id,
            "task": task,
            "seed": int(request.seed),
            "scene": scene_request(scene),
            "first_try": "none",
            "success": False,
            "failure": "",
        }
        self._publish_truth()
        response.accepted = True
        if scene.goal_xy_m is not None:
            response.has_goal = True
            response.goal_position.x, response.goal_position.y = map(float, scene.goal_xy_m)
        return response

    def _on_check_success(
        self, request: Trigger.Request, response: Trigger.Response
    ) -> Trigger.Response:
        truth = self._tasks[self._task]
        try:
            state = read_state(self._address)
            outcome = truth.outcome(state)
        except (OSError, SceneDataError, RuntimeError) as error:
            self.get_logger().warning(f"cannot check success: {error}")
            return response
        tried = truth.first_tried(state)
        if tried is not None and self._episode.get("first_try") == "none":
            movable = state.scene.objects[tried].movable
            self._episode["first_try"] = "movable" if movable else "immovable"
        self._episode.update(success=outcome.success, failure=outcome.failure)
        self._publish_truth()
        response.success, response.message = outcome.success, outcome.failure
        return response

    def _publish_truth(self) -> None:
        self._truth.publish(String(data=json.dumps(self._episode)))


def main(args: list[str] | None = None) -> int:
    """Entry point of the node."""
    return run_node("simulated_scene", SceneNode, args)


if __name__ == "__main__":
    sys.exit(main())
