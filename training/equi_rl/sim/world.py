# SPDX-License-Identifier: MIT
"""The simulated cell: a UR5 with its gripper over a table, and what lies on it.

Usable without gymnasium. `reset(scene)` builds the whole simulation anew, so nothing of an earlier
episode, not even the solver's memory, can reach the next one: the same scene and the same commands
give the same bits.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equi_core.contract import ImageSpec
from equi_core.geometry import yaw_of
from equi_core.motion import ur5_kinematics as kinematics
from equi_core.motion.blocked_step import (
    BACK_OFF_M,
    MOST_BACK_OFF_M,
    PRESSED_MORE_N,
    RELIEF_STEP_M,
    blocked_step,
)
from equi_core.observation.image import pixel_centres_m
from equi_rl.sim.arm import Arm, joints_for_pose, tcp_pose_of
from equi_rl.sim.bullet import BulletClient, new_client, pybullet
from equi_rl.sim.errors import SimError
from equi_rl.sim.gripper import LEFT_FINGER, RIGHT_FINGER, Gripper
from equi_rl.sim.motion import MotionLimits, trapezoid_fractions
from equi_rl.sim.objects import SimObject
from equi_rl.sim.physics_config import PhysicsConfig, TimeSplit
from equi_rl.sim.raycast import ShapeTable, cast_heights
from equi_rl.sim.robot_model import TCP_FROM_TOOL0_M, description_path, robot_model
from equi_rl.sim.scene import Scene, WorldState
from equi_rl.sim.stiff_arm import FINE_SOLVER_ITERATIONS, ContactSense

FloatArray = NDArray[np.float64]

__all__ = ["PhysicsConfig", "TimeSplit", "World"]

TABLE_FRICTION = 1.0
# Joint errors below this move the TCP by less than the distance at which resistance is felt, so
# the exact distance need not be computed.
_FREE_LAG_RAD = 1e-3
# The same for a stiff arm, in newtons: a few.
_UNFELT_LAG_RAD = 1e-4
GRAVITY_M_S2 = 9.81

TOUCHING_M = 0.0005
"""Shapes nearer than this touch: the physics keeps a hair of distance between them."""


class World:
    """One PyBullet simulation of the cell."""

    def __init__(self, config: PhysicsConfig | None = None) -> None:
        self.config = config or PhysicsConfig()
        self._client: BulletClient | None = new_client()
        self._step = self._require_client().stepSimulation
        self.spent = TimeSplit()
        self.objects: list[SimObject] = []
        self.goal_xy_m: tuple[float, float] | None = None
        self._blocked = False
        self._commanded_rad = np.array(kinematics.HOME_RAD)
        self._commanded_pose = np.zeros(4)
        self._robot_id = -1
        self._iterations = 0
        self._unfinished_steps = 0
        self._sense: ContactSense | None = None
        self.arm: Arm
        self.gripper: Gripper
        self.reset(Scene(objects=()))

    def close(self) -> None:
        """Release the physics server; the world cannot be used afterwards."""
        if self._client is not None:
            self._client.disconnect()
            self._client = None

    # Building and reading --------------------------------------------------------------------

    def reset(self, scene: Scene) -> None:
        """Build the simulation of a scene, everything at rest."""
        client = self._require_client()
        joints = joints_for_pose(scene.tcp_position_m, scene.yaw_rad)
        client.resetSimulation()
        client.setPhysicsEngineParameter(
            fixedTimeStep=self.config.step_s,
            numSolverIterations=self.config.free_solver_iterations,
            deterministicOverlappingPairs=1,
            # With cone friction the arm's motors are left short of their targets, whatever the
            # number of iterations, as soon as any contact joins their island.
            enableConeFriction=0,
        )
        client.setGravity(0.0, 0.0, -GRAVITY_M_S2)
        table = client.createMultiBody(0.0, client.createCollisionShape(pybullet.GEOM_PLANE))
        client.changeDynamics(table, -1, lateralFriction=TABLE_FRICTION, restitution=0.0)
        self._robot_id = client.loadURDF(
            str(description_path()),
            useFixedBase=True,
            flags=pybullet.URDF_USE_INERTIA_FROM_FILE | pybullet.URDF_IGNORE_VISUAL_SHAPES,
        )
        self.arm = Arm(client, self._robot_id)
        self.gripper = Gripper(client, self._robot_id)
        self.arm.teleport(joints.tolist())
        self.gripper.teleport(scene.opening)
        self.objects = [
            SimObject(client, item, body=index + 1) for index, item in enumerate(scene.objects)
        ]
        self.goal_xy_m = scene.goal_xy_m
        self._blocked = False
        self._unfinished_steps = 0
        self._iterations = self.config.free_solver_iterations
        stiff = self.config.stiff_arm
        self._sense = None if stiff is None else ContactSense(stiff, self.config.tick_s)
        self.solve_finely(False)
        self._commanded_pose = np.zeros(4)  # turns of an earlier episode's wrist do not count
        self._command_from(joints)

    def get_state(self) -> WorldState:
        """The scene as measured now, with the robot's own reports."""
        pose = self.arm.tcp_pose()
        scene = Scene(
            objects=tuple(item.measured() for item in self.objects),
            tcp_position_m=(float(pose[0, 3]), float(pose[1, 3]), float(pose[2, 3])),
            yaw_rad=float(yaw_of(pose)),
            opening=self.gripper.opening,
            goal_xy_m=self.goal_xy_m,
        )
        return WorldState(
            scene=scene,
            holding=self.gripper.holding,
            blocked=self._blocked,
            held_object=self._held_object(),
        )

    def commanded_pose(self) -> tuple[tuple[float, float, float], float]:
        """TCP position [m] and yaw [rad] that the arm was last told to take, or was stopped at."""
        x, y, z, yaw = (float(value) for value in self._commanded_pose)
        return (x, y, z), yaw

    def in_contact(self, first: int, second: int) -> bool:
        """Whether two objects, by index, touch: asked of the shapes where they are now."""
        a, b = self.objects[first].body_id, self.objects[second].body_id
        # Contact points of the last step are not kept for sleeping bodies; distances always exist.
        return bool(self._require_client().getClosestPoints(a, b, TOUCHING_M))

    def fingers_touching(self, index: int) -> tuple[bool, bool]:
        """Whether the left and the right finger touch an object."""
        points = self._require_client().getContactPoints(
            self._robot_id, self.objects[index].body_id
        )
        links = {point[3] for point in points if point[8] <= TOUCHING_M}
        return LEFT_FINGER in links, RIGHT_FINGER in links

    # Acting ----------------------------------------------------------------------------------

    def step_physics(self, duration_s: float) -> None:
        """Let time pass; the motors follow their last targets."""
        self._advance(max(1, round(duration_s * self.config.rate_hz)))

    def move_tcp(
        self, position_m: Sequence[float], yaw_rad: float, unfinished_s: float = 0.0
    ) -> bool:
        """Move along a straight line to a TCP position and yaw; False if something blocked it.

        Raises OutOfReachError or SingularPoseError before anything moves.

        Args:
            position_m: TCP target (3,) in base_link [m].
            yaw_rad: gripper yaw there [rad].
            unfinished_s: return this long before the motion ends; the motors complete it while
                time passes. Models a command that reached the arm late.
        """
        config = self.config
        self._advance(self._unfinished_steps)
        self._unfinished_steps = 0
        target = np.array([*position_m, yaw_rad], dtype=np.float64)
        start = self._commanded_pose
        began = time.perf_counter()
        tick_s = config.tick_s
        fractions = trapezoid_fractions(
            float(np.linalg.norm(target[:3] - start[:3])),
            float(target[3] - start[3]),
            self._motion_limits(start, target),
            tick_s,
        )
        path = kinematics.straight_path(
            self._commanded_rad, start, target, fractions, TCP_FROM_TOOL0_M
        )
        steps = np.diff(path, axis=0, prepend=self._commanded_rad[None])
        speeds = steps / tick_s
        # The motors add the streamed speed to their pull towards the target, so a target that
        # lies mid-way through the physics steps of its tick is followed without lead or lag.
        targets = path - steps * (config.steps_per_command + 1) / (2 * config.steps_per_command)
        self.spent.kinematics_s += time.perf_counter() - began
        self.solve_finely(self.gripper.holding)
        left_out = min(len(path), round(unfinished_s / tick_s))
        if self._sense is not None:
            self._sense.begin_step(self._displacement_m(self._commanded_rad))
        for tick, (joints, speed) in enumerate(
            zip(targets[: len(path) - left_out].tolist(), speeds.tolist(), strict=False)
        ):
            self.arm.stream(joints, speed)
            self._advance(config.steps_per_command)
            if self._sense is not None:
                if self._sense.touches(self._displacement_m(path[tick])):
                    return self._stop_on_path(target)
            elif tick % 2 == 1:
                lag_m = self._lag_m(path[tick])
                if lag_m > config.blocked_lag_m:
                    return self._stop_on_path(target)
                self.solve_finely(self.gripper.holding or lag_m > config.resisted_lag_m)
            if tick % 4 == 3:
                self.gripper.update(4 * tick_s)
        self.arm.set_joint_targets(path[-1].tolist())
        if left_out == 0:
            self._settle_arm(path[-1])
        if left_out == 0 and self._is_kept_from(path[-1]):
            return self._stop_on_path(target)
        self._unfinished_steps = left_out * config.steps_per_command
        self._commanded_rad, self._commanded_pose = path[-1], target
        self._blocked = False
        return True

    def move_gripper(self, opening: float) -> None:
        """Go to an opening in [0, 1] and wait until the fingers got there or were stopped."""
        self._notice_displaced()
        self.gripper.set_target(opening)
        if self.gripper.settled and not self.gripper.holding:
            return
        ticks = self.config.gripper_steps // self.config.steps_per_command
        tick_s = self.config.tick_s
        for _ in range(ticks):
            self.gripper.update(tick_s)
            if self.gripper.settled:
                return
            self.solve_finely(self.gripper.resisted)
            self._advance(self.config.steps_per_command)
        self.gripper.update(tick_s)

    def wait_for_rest(self) -> None:
        """Let objects come to rest (a dropped block lands, a pushed one stops), up to a cap."""
        config = self.config
        for _ in range(config.settle_steps // 4):
            if all(item.speed_m_s() < config.settled_object_speed_m_s for item in self.objects):
                return
            self._advance(4)
            self.gripper.update(4 * config.step_s)

    # Seeing ----------------------------------------------------------------------------------

    def shapes(self, with_robot: bool) -> ShapeTable:
        """Shapes of the objects, and of the robot if asked, where they are now."""
        tables = [item.posed_shapes() for item in self.objects]
        if with_robot:
            joints, _ = self.arm.measured()
            half = self.gripper.opening * 0.0425
            tables.append(robot_model().posed_shapes([*joints, half, half]))
        return ShapeTable.joined(*tables) if tables else ShapeTable.empty()

    def heights(self, image: ImageSpec, centre_xy_m: Sequence[float]) -> NDArray[np.float32]:
        """True heights (S, S) [m] of table and objects around a point, seen from above."""
        began = time.perf_counter()
        table = self.shapes(with_robot=False)
        offsets = pixel_centres_m(image)
        heights = np.empty((image.size_px, image.size_px))
        cast_heights(
            table.kind,
            table.size_m,
            table.rotation,
            table.position_m,
            offsets + centre_xy_m[0],
            offsets + centre_xy_m[1],
            0.0,
            heights,
        )
        self.spent.rendering_s += time.perf_counter() - began
        return heights.astype(np.float32)

    # Inside ----------------------------------------------------------------------------------

    def _advance(self, steps: int) -> None:
        began = time.perf_counter()
        step = self._step
        for _ in range(steps):
            step()
        self.spent.physics_s += time.perf_counter() - began
        self.spent.physics_steps += steps

    def _notice_displaced(self) -> None:
        """Let objects that were moved stay awake, before the fingers may let go of them."""
        for item in self.objects:
            item.pose()

    def solve_finely(self, finely: bool) -> None:
        """Choose how exactly contacts are solved from now on: a squeezed object needs it."""
        config = self.config
        wanted = config.contact_solver_iterations if finely else config.free_solver_iterations
        if self._sense is not None:  # a block that sinks into a finger would not be felt
            wanted = FINE_SOLVER_ITERATIONS
        if wanted != self._iterations:
            self._require_client().setPhysicsEngineParameter(numSolverIterations=wanted)
            self._iterations = wanted

    def _settle_arm(self, joints_rad: FloatArray) -> None:
        """Wait until the arm rests at its joint targets, or the cap is reached."""
        config = self.config
        for _ in range(config.settle_steps // 4):
            self._advance(4)
            self.gripper.update(4 * config.step_s)
            joints, speeds = self.arm.measured()
            if (
                np.abs(joints - joints_rad).max() < config.settled_joint_error_rad
                and np.abs(speeds).max() < config.settled_joint_speed_rad_s
            ):
                return

    def _stop_on_path(self, target: FloatArray) -> bool:
        """Give up a blocked move: hold the point of the straight path that was reached."""
        start, start_rad = self._commanded_pose, self._commanded_rad
        pose = tcp_pose_of(self.arm.measured()[0])
        back_off_m, pressed_n = BACK_OFF_M, math.inf
        while True:
            blocked = blocked_step(start, target, pose[:3, 3], float(yaw_of(pose)), back_off_m)
            joints = kinematics.straight_path(
                start_rad, start, target, [blocked.fraction], TCP_FROM_TOOL0_M
            )[0]
            held = blocked.pose
            if blocked.leaning:
                joints = kinematics.straight_path(joints, held, held, [1.0], TCP_FROM_TOOL0_M)[0]
            self.arm.set_joint_targets(joints.tolist())
            self._commanded_rad, self._commanded_pose = joints, held
            self._settle_arm(joints)
            sense = self._sense
            if sense is None or not sense.presses(self._displacement_m(joints)):
                break
            if sense.force_n > pressed_n + PRESSED_MORE_N:  # drawn along, it is pushed off its way
                self._command_from(self.arm.measured()[0])
                self.arm.set_joint_targets(self._commanded_rad.tolist())
                break
            if back_off_m >= MOST_BACK_OFF_M:
                break
            back_off_m, pressed_n = back_off_m + RELIEF_STEP_M, sense.force_n
        self._blocked = True
        return False

    def _command_from(self, joints_rad: FloatArray) -> None:
        pose = tcp_pose_of(joints_rad)
        self._commanded_rad = np.asarray(joints_rad, dtype=np.float64)
        # Yaw is kept unwrapped, so that the wrist's own turns are counted.
        yaw = float(yaw_of(pose))
        turns = round((self._commanded_pose[3] - yaw) / (2 * math.pi))
        self._commanded_pose = np.array([*pose[:3, 3], yaw + 2 * math.pi * turns])

    def _lag_m(self, joints_rad: FloatArray) -> float:
        """How far the TCP is from where it was told to be."""
        if self.arm.largest_error_rad(joints_rad) < _FREE_LAG_RAD:
            return 0.0
        measured, _ = self.arm.measured()
        return float(np.linalg.norm(tcp_pose_of(measured)[:3, 3] - tcp_pose_of(joints_rad)[:3, 3]))

    def _displacement_m(self, joints_rad: FloatArray) -> FloatArray:
        """How far (3,) the TCP is from where a stiff arm would have it."""
        if self.arm.largest_error_rad(joints_rad) < _UNFELT_LAG_RAD:
            return np.zeros(3)
        reached: FloatArray = tcp_pose_of(self.arm.measured()[0])[:3, 3]
        return reached - tcp_pose_of(joints_rad)[:3, 3]

    def _is_kept_from(self, joints_rad: FloatArray) -> bool:
        """Whether something keeps the arm, at rest, from where it should be."""
        if self._sense is not None:
            return self._sense.blocks(self._displacement_m(joints_rad))
        return self._lag_m(joints_rad) > self.config.arrived_m

    def _motion_limits(self, start: FloatArray, target: FloatArray) -> MotionLimits:
        """Speeds of a move; a stiff arm is slow where it may meet something."""
        stiff = self.config.stiff_arm
        if stiff is None:
            return self.config.motion
        speed_m_s = stiff.limits.speed_of_step(start[:3], target[:3])
        return dataclasses.replace(self.config.motion, speed_m_s=speed_m_s)

    def _held_object(self) -> int | None:
        if not self.gripper.holding:
            return None
        for index in range(len(self.objects)):
            if all(self.fingers_touching(index)):
                return index
        return None

    def _require_client(self) -> BulletClient:
        if self._client is None:
            raise SimError("this world was closed; make a new one")
        return self._client
