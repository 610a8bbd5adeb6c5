# SPDX-License-Identifier: MIT
"""Specification of the ground truth: training's scenes and success, plain data in between."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from equi_cell_sim.expert_policy import ExpertPolicy
from equi_cell_sim.ground_truth import GroundTruth
from equi_cell_sim.scene_data import (
    SceneDataError,
    scene_request,
    state_from_data,
    state_to_data,
)
from equi_core.contract import PolicyContract
from equi_rl.envs import TASKS, make_env
from equi_rl.sim.scene import WorldState


def through_the_control_api(state: WorldState) -> WorldState:
    return state_from_data(json.loads(json.dumps(state_to_data(state))))


@pytest.mark.parametrize("task", TASKS)
def test_a_seed_gives_the_scene_that_training_starts_with(task):
    truth, env = GroundTruth(task), make_env(task)
    env.reset(seed=11)
    assert truth.scene(11).objects == env.state().scene.objects
    assert truth.scene(11) != truth.scene(12)
    truth.close()
    env.close()


@pytest.mark.parametrize("task", TASKS)
def test_a_state_comes_back_unchanged_through_the_control_api(task):
    truth = GroundTruth(task)
    scene = truth.scene(5)
    state = WorldState(scene, True, False, 0)
    assert through_the_control_api(state) == state
    sent = json.loads(json.dumps(scene_request(scene)))
    assert len(sent["objects"]) == len(scene.objects)
    assert (sent["goal_xy_m"] is None) == (scene.goal_xy_m is None)
    truth.close()


def test_a_lifted_movable_cube_is_success_and_an_untouched_scene_is_not():
    truth = GroundTruth("block_picking")
    scene = truth.scene(1)
    truth.begin(scene)
    assert not truth.outcome(WorldState(scene, False, False, None)).success
    index = next(i for i, item in enumerate(scene.objects) if item.movable)
    x, y, _ = scene.objects[index].position_m
    lifted = list(scene.objects)
    lifted[index] = dataclasses.replace(lifted[index], position_m=(x, y, 0.12))
    held = dataclasses.replace(scene, objects=tuple(lifted))
    assert truth.outcome(WorldState(held, True, False, index)).success
    truth.close()


def test_touching_blocks_are_success_in_pulling():
    truth = GroundTruth("block_pulling")
    scene = truth.scene(1)
    truth.begin(scene)
    first, second = (
        dataclasses.replace(item, position_m=(x, 0.0, item.size_m[2] / 2), yaw_rad=0.0)
        for item, x in zip(scene.objects, (0.45, 0.45 + scene.objects[0].size_m[0]), strict=True)
    )
    together = dataclasses.replace(scene, objects=(first, second))
    assert truth.outcome(WorldState(together, False, False, None)).success
    assert not truth.outcome(WorldState(scene, False, False, None)).success
    truth.close()


def test_the_first_object_tried_is_the_one_that_the_gripper_goes_down_to():
    truth = GroundTruth("block_picking")
    scene = truth.scene(2)
    x, y = scene.objects[1].xy_m
    high = dataclasses.replace(scene, tcp_position_m=(x, y, 0.2))
    low = dataclasses.replace(scene, tcp_position_m=(x + 0.01, y, 0.04))
    assert truth.first_tried(WorldState(high, False, False, None)) is None
    assert truth.first_tried(WorldState(low, False, False, None)) == 1
    truth.close()


def test_a_malformed_answer_is_refused():
    with pytest.raises(SceneDataError, match="objects"):
        state_from_data({"tcp_position_m": [0, 0, 0]})


def test_the_expert_behind_the_interface_acts_with_explicit_memory():
    import numpy as np

    truth = GroundTruth("block_picking")
    state = WorldState(truth.scene(3), False, False, None)
    policy = ExpertPolicy(PolicyContract(task="block_picking"), lambda: state)
    start = policy.initial_state()
    image = np.zeros((2, 84, 84), dtype=np.float32)
    first = policy.step(image, start)
    assert start.memory is None, "the state that went in is unchanged"
    assert first.state.memory is not None
    assert first.action.shape == (5,)
    assert np.abs(first.action).max() <= 1.0
    truth.close()


def test_the_simulated_cell_draws_referees_and_solves_a_task_of_a_plug_in(repository_root):
    # In a process of its own, as a node of the cell: others see the shipped tasks only.
    code = """
import dataclasses
import numpy as np
from equi_cell_sim.expert_policy import ExpertPolicy
from equi_cell_sim.ground_truth import GroundTruth
from equi_cell_sim.scene_data import scene_request
from equi_core.contract import PolicyContract
from equi_rl.sim.scene import WorldState

truth = GroundTruth("loose_lid")
scene = truth.scene(1)
truth.begin(scene)
print(truth.outcome(WorldState(scene, False, False, None)).success, end=" ")
index = next(i for i, item in enumerate(scene.objects) if item.movable)
lids = list(scene.objects)
lids[index] = dataclasses.replace(lids[index], position_m=(*lids[index].position_m[:2], 0.12))
held = dataclasses.replace(scene, objects=tuple(lids))
print(truth.outcome(WorldState(held, True, False, index)).success, end=" ")
print(len(scene_request(scene)["objects"]), end=" ")
state = WorldState(scene, False, False, None)
expert = ExpertPolicy(PolicyContract(task="loose_lid"), lambda: state)
step = expert.step(np.zeros((2, 84, 84), np.float32), expert.initial_state())
print(abs(step.action).max() > 0)
"""
    path = os.pathsep.join([str(repository_root / "training" / "examples"), *sys.path])
    env = {**os.environ, "PYTHONPATH": path, "EQUI_PLUGINS": "loose_lid"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.split("\n")[0] == "False True 2 True", done.stderr
