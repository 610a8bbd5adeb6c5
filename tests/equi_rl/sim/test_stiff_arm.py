# SPDX-License-Identifier: MIT
"""A stiff arm stops where it touches; one that gives way presses on. Free motion feels nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equi_rl.envs import make_env
from equi_rl.envs.arm_options import arm_options
from equi_rl.experts import ExpertConfig, FirstChoice, make_expert
from equi_rl.experts.skills import BEHIND_BAR_M
from equi_rl.sim.object_parts import handle_position_m
from equi_rl.sim.physics_config import PhysicsConfig
from equi_rl.sim.scene import ObjectKind, Scene, SceneObject
from equi_rl.sim.stiff_arm import StiffArm
from equi_rl.sim.world import World

CENTRE = (0.5, 0.0)
STIFF = PhysicsConfig(stiff_arm=StiffArm())
BESIDE_M = 0.009


@pytest.fixture
def stiff_world():
    world = World(STIFF)
    yield world
    world.close()


def block(x: float = 0.5, *, movable: bool, mass_kg: float = 0.1) -> SceneObject:
    return SceneObject(
        ObjectKind.BLOCK,
        (x, 0.0, 0.025),
        0.0,
        movable,
        size_m=(0.05, 0.05, 0.05),
        mass_kg=mass_kg,
        friction=0.6,
    )


def pressed_m(
    monkeypatch: pytest.MonkeyPatch, world: World, target_m: tuple[float, float, float]
) -> tuple[bool, float]:
    """Whether a move arrives, and by how much the TCP was displaced from its way at most [m]."""
    largest = 0.0
    stream = world.arm.stream

    def watched(joints_rad, speeds_rad_s):
        nonlocal largest
        stream(joints_rad, speeds_rad_s)
        largest = max(largest, float(np.linalg.norm(world._displacement_m(np.array(joints_rad)))))

    monkeypatch.setattr(world.arm, "stream", watched)
    arrived = world.move_tcp(target_m, world.commanded_pose()[1])
    return arrived, largest


def test_coming_down_on_a_block_a_stiff_arm_stops_within_two_millimetres(monkeypatch):
    scene = Scene(objects=(block(movable=False),), tcp_position_m=(*CENTRE, 0.09), opening=0.0)
    depths_m = {}
    for name, config in (("stiff", STIFF), ("yielding", PhysicsConfig())):
        world = World(config)
        world.reset(scene)
        arrived, depths_m[name] = pressed_m(monkeypatch, world, (*CENTRE, 0.04))
        assert not arrived
        assert world.get_state().blocked
        # Fingertips reach 5 mm below the TCP. Both arms stay a little above what they have met.
        assert world.get_state().scene.tcp_position_m[2] == pytest.approx(0.056, abs=0.003)
        world.close()

    assert depths_m["stiff"] < 0.002
    assert depths_m["yielding"] > 0.004


def test_a_stiff_arm_feels_nothing_in_free_motion(stiff_world):
    rng = np.random.default_rng(0)
    stiff_world.reset(Scene(objects=(), tcp_position_m=(*CENTRE, 0.12)))
    for _ in range(40):
        position, yaw = stiff_world.commanded_pose()
        low, high = (0.3, -0.2, 0.01), (0.7, 0.2, 0.25)
        target = np.clip(np.array(position) + rng.uniform(-0.05, 0.05, 3), low, high)
        assert stiff_world.move_tcp(target, yaw + rng.uniform(-0.39, 0.39))
        reached = stiff_world.arm.tcp_pose()[:3, 3]
        assert np.linalg.norm(reached - target) < 0.0005


def test_a_stiff_arm_pushes_what_can_be_moved(stiff_world):
    scene = Scene(
        objects=(block(0.56, movable=True),),
        tcp_position_m=(*CENTRE, 0.03),
        yaw_rad=math.pi / 2,
        opening=0.0,
    )
    stiff_world.reset(scene)
    assert stiff_world.move_tcp((0.55, 0.0, 0.03), stiff_world.commanded_pose()[1])
    assert stiff_world.get_state().scene.objects[0].position_m[0] > 0.575


def test_a_stiff_arm_is_as_slow_near_the_table_as_the_robot(stiff_world):
    for start_z_m, end_z_m, speed_m_s in ((0.06, 0.01, 0.04), (0.20, 0.25, 0.08)):
        stiff_world.reset(Scene(objects=(), tcp_position_m=(*CENTRE, start_z_m)))
        before = stiff_world.spent.physics_steps
        stiff_world.move_tcp((*CENTRE, end_z_m), stiff_world.commanded_pose()[1])
        elapsed_s = (stiff_world.spent.physics_steps - before) * STIFF.step_s
        assert elapsed_s == pytest.approx(0.05 / speed_m_s, rel=0.25)


def test_a_stiffness_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match=r"stiffness_n_m = nan must be a positive number"):
        StiffArm(stiffness_n_m=math.nan)


def on_a_post(scene: Scene) -> Scene:
    """The closed fingers over the gap behind the nearest handle, too far to one side."""
    drawer = scene.objects[0]
    inwards = np.array(drawer.heading)
    aside = np.array([-inwards[1], inwards[0]])
    place = np.array(handle_position_m(drawer)[:2]) + BEHIND_BAR_M * inwards + BESIDE_M * aside
    x, y = (float(value) for value in place)
    return Scene(scene.objects, (x, y, 0.06), drawer.yaw_rad + math.pi / 2, opening=0.0)


@pytest.mark.parametrize("knows", [False, True])
def test_only_an_expert_that_knows_the_arm_is_stiff_comes_off_the_handle(knows):
    env = make_env("drawer_opening", **dict(arm_options(stiff=True)))
    config = ExpertConfig(FirstChoice.NEAREST, stiff_arm=knows)
    expert = make_expert("drawer_opening", env.contract, config)
    env.reset(seed=3, options={"scene": on_a_post(env.scene_of_seed(3))})
    # Somebody else has come down beside the gap.
    env.step([1.0, 0.0, 0.0, -1.0, 0.0])
    assert env.state().blocked
    memory = expert.start(env.state(), np.random.default_rng(0))
    opened = False
    for _ in range(30):
        action, memory = expert.act(env.state(), memory)
        _, _, opened, truncated, _ = env.step(action)
        if opened or truncated:
            break
    env.close()

    assert opened is knows
