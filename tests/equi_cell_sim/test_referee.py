"""Specification of the referee: training's scenes, training's verdict, plain data in between."""

from __future__ import annotations

import dataclasses
import json

import pytest

from equi_cell_sim.expert_policy import ExpertPolicy
from equi_cell_sim.referee import Referee, RefereeError, scene_request, world_state
from equi_core.contract import PolicyContract
from equi_rl.envs import TASKS, make_env
from equi_rl.sim.scene import WorldState


def answer(scene, holding=False, held=None) -> dict:
    """What the emulator's control API says about a scene, after a trip through JSON."""
    plain = dataclasses.asdict(scene)
    for item, found in zip(plain["objects"], scene.objects, strict=True):
        item["kind"] = found.kind.value
    return json.loads(json.dumps({**plain, "holding": holding, "held_object": held}))


@pytest.mark.parametrize("task", TASKS)
def test_a_seed_gives_the_scene_that_training_starts_with(task):
    referee, env = Referee(task), make_env(task)
    env.reset(seed=11)
    assert referee.scene(11).objects == env.state().scene.objects
    assert referee.scene(11) != referee.scene(12)
    referee.close()
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_scenes_survive_the_way_through_the_control_api(task):
    referee = Referee(task)
    scene = referee.scene(5)
    assert world_state(answer(scene)).scene.objects == scene.objects
    sent = json.loads(json.dumps(scene_request(scene)))
    assert len(sent["objects"]) == len(scene.objects)
    assert (sent["goal_xy_m"] is None) == (scene.goal_xy_m is None)
    referee.close()


def test_a_lifted_movable_cube_is_success_and_an_untouched_scene_is_not():
    referee = Referee("block_picking")
    scene = referee.scene(1)
    referee.begin(scene)
    assert not referee.judge(WorldState(scene, False, False, None)).success
    index = next(i for i, item in enumerate(scene.objects) if item.movable)
    x, y, _ = scene.objects[index].position_m
    lifted = list(scene.objects)
    lifted[index] = dataclasses.replace(lifted[index], position_m=(x, y, 0.12))
    held = dataclasses.replace(scene, objects=tuple(lifted))
    assert referee.judge(WorldState(held, True, False, index)).success
    referee.close()


def test_touching_blocks_are_success_in_pulling():
    referee = Referee("block_pulling")
    scene = referee.scene(1)
    referee.begin(scene)
    first, second = (
        dataclasses.replace(item, position_m=(x, 0.0, item.size_m[2] / 2), yaw_rad=0.0)
        for item, x in zip(scene.objects, (0.45, 0.45 + scene.objects[0].size_m[0]), strict=True)
    )
    together = dataclasses.replace(scene, objects=(first, second))
    assert referee.judge(WorldState(together, False, False, None)).success
    assert not referee.judge(WorldState(scene, False, False, None)).success
    referee.close()


def test_the_first_object_tried_is_the_one_that_the_gripper_goes_down_to():
    referee = Referee("block_picking")
    scene = referee.scene(2)
    x, y = scene.objects[1].xy_m
    high = dataclasses.replace(scene, tcp_position_m=(x, y, 0.2))
    low = dataclasses.replace(scene, tcp_position_m=(x + 0.01, y, 0.04))
    assert referee.first_tried(WorldState(high, False, False, None)) is None
    assert referee.first_tried(WorldState(low, False, False, None)) == 1
    referee.close()


def test_a_malformed_answer_is_refused():
    with pytest.raises(RefereeError, match="objects"):
        world_state({"tcp_position_m": [0, 0, 0]})


def test_the_expert_behind_the_interface_acts_with_explicit_memory():
    import numpy as np

    referee = Referee("block_picking")
    state = WorldState(referee.scene(3), False, False, None)
    policy = ExpertPolicy(PolicyContract(task="block_picking"), lambda: state)
    start = policy.initial_state()
    image = np.zeros((2, 84, 84), dtype=np.float32)
    first = policy.step(image, start)
    assert start.memory is None, "the state that went in is unchanged"
    assert first.state.memory is not None
    assert first.action.shape == (5,)
    assert np.abs(first.action).max() <= 1.0
    referee.close()
