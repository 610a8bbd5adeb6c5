# SPDX-License-Identifier: MIT
"""The examples of training/examples: a task and a memory of one's own."""

from __future__ import annotations

import dataclasses
import importlib
import math
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import torch

from equi_rl.audit.environment import audit_environment
from equi_rl.audit.task import audit_task
from equi_rl.envs import ENV_IDS, TASKS, make_env, register_task, registry
from equi_rl.experts import ExpertConfig, FirstChoice, TaskPlan, make_expert, register_expert
from equi_rl.experts import expert as expert_plans
from equi_rl.experts.skills import Goal
from equi_rl.nets import dense, memories
from equi_rl.nets.equivariance import actor_errors, critic_errors
from equi_rl.nets.memories import Lstm, LstmState, register_memory
from equi_rl.nets.networks import Actor, Critic
from equi_rl.recurrent_sac.agent import RecurrentSac
from equi_rl.recurrent_sac.config import RecurrentSacConfig
from equi_rl.recurrent_sac.worlds import MIRRORED_CARFLAG
from equi_rl.training.rollout import play_expert


@pytest.fixture
def examples(repository_root, monkeypatch):
    folder = repository_root / "training" / "examples"
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def loose_lid(examples):
    module = importlib.import_module("loose_lid")
    yield module
    # Other tests of this process see the tasks of this package only.
    for known in (registry._ENTRY_POINTS, ENV_IDS, expert_plans._PLANS):
        known.pop("loose_lid")
    del sys.modules["loose_lid"]


@pytest.fixture
def touch_block(examples):
    yield importlib.import_module("touch_block")
    for known in (registry._ENTRY_POINTS, ENV_IDS, expert_plans._PLANS):
        known.pop("touch_block")
    del sys.modules["touch_block"]


def test_touching_a_block_hides_nothing_and_the_expert_does_it_at_once(touch_block):
    env, expert = make_env("touch_block"), make_expert("touch_block")
    try:
        assert all(item.movable for item in env.scene_of_seed(3).objects)
        played = [play_expert(env, expert, seed)[1] for seed in range(3)]
    finally:
        env.close()
    assert [outcome.success for outcome in played] == [True] * 3
    assert max(outcome.steps for outcome in played) < 10


def test_the_small_world_of_slac_hides_nothing_and_looks_the_same_when_it_is_turned(examples):
    module = importlib.import_module("slac_small_world")
    world = module.SmallWorld()
    observation, success = world.reset(seed=4), False
    x, y = world.block_px
    turned = module.SmallWorld()
    turned.reset(seed=4)
    turned.block_px = np.array([-y, x])
    np.testing.assert_array_equal(np.rot90(observation[0]), turned.observation()[0])
    while not success:
        way = np.r_[0.0, world.block_px / module.STEP_PX, 0.0, 0.0]
        _, reward, success, truncated = world.step(way)
        assert not truncated
    assert reward == 1.0


@pytest.fixture
def gru(examples):
    yield importlib.import_module("gru_memory")
    memories._MEMORIES.pop("gru")
    del sys.modules["gru_memory"]


def test_a_plug_in_named_in_the_environment_is_known_to_every_command(examples):
    code = "from equi_rl.envs import TASKS; print('loose_lid' in TASKS)"
    path = os.pathsep.join([str(examples), *sys.path])
    env = {**os.environ, "PYTHONPATH": path, "EQUI_PLUGINS": "loose_lid"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"


def test_a_plug_in_that_cannot_be_imported_is_named():
    env = {**os.environ, "EQUI_PLUGINS": "no_such_plugin", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", "import equi_rl.envs"], env=env, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "plug-in 'no_such_plugin' of EQUI_PLUGINS cannot be imported" in done.stderr


def test_a_task_registers_itself_and_gymnasium_can_make_it(loose_lid):
    assert "loose_lid" in TASKS
    assert list(TASKS)[:4] == ["block_picking", "block_pulling", "block_pushing", "drawer_opening"]
    env = gymnasium.make(ENV_IDS["loose_lid"])
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    env.close()


def test_names_that_are_taken_are_refused(loose_lid):
    with pytest.raises(ValueError, match=r"already equi_rl\.envs\.picking:BlockPicking"):
        register_task("block_picking", "elsewhere:Picking")
    with pytest.raises(ValueError, match="cannot be registered"):
        register_task("loose lid", "loose_lid:LooseLid")
    with pytest.raises(ValueError, match="already has an expert"):
        register_expert("loose_lid", TaskPlan(lambda *_: Goal((0, 0, 0), 0.0, 0.0), 1, 1, 0.1))


@pytest.mark.parametrize("first_choice", list(FirstChoice))
def test_the_expert_lifts_the_loose_lid_whichever_it_tries_first(loose_lid, first_choice):
    env = make_env("loose_lid")
    expert = make_expert("loose_lid", env.contract, ExpertConfig(first_choice=first_choice))
    outcomes = [play_expert(env, expert, seed)[1] for seed in range(8)]
    env.close()
    assert all(outcome.success for outcome in outcomes)
    assert {outcome.movable_first for outcome in outcomes} == {True, False}


def test_a_lid_fits_between_the_open_fingers_whatever_its_heading(loose_lid):
    widest_opening_m = 0.085  # of the 2F-85; fingers that cannot close at all are taken for jammed
    across_m = math.hypot(*loose_lid.LID_M[:2])
    assert across_m < widest_opening_m - 0.01


def test_the_stuck_lid_looks_like_the_loose_one_and_does_not_lift(loose_lid):
    env = make_env("loose_lid")
    scene = env.scene_of_seed(3)
    one, _ = env.reset(seed=0, options={"scene": scene})
    two, _ = env.reset(seed=0, options={"scene": scene.with_mobility_swapped()})
    env.close()
    np.testing.assert_array_equal(one, two)


def test_the_world_of_the_task_is_symmetric(loose_lid):
    task = audit_task(ENV_IDS["loose_lid"], "C4")
    for audit in audit_environment(task, episodes=1, steps=3, starts=40):
        assert audit.observation.largest < 1e-3
        assert audit.reward.largest == 0.0
        assert audit.belief_p_value > 0.01


# The memory -----------------------------------------------------------------------------------


def test_law_the_gru_is_equivariant_in_actor_and_critic(gru):
    from equi_rl.nets.config import NetworkConfig

    torch.manual_seed(0)
    config = NetworkConfig(
        memory="gru",
        observation_size=8,
        encoder_channels=(16, 32),
        encoder_kernels=(4, 3),
        encoder_strides=(2, 1),
        recurrent_channels=32,
        head_channels=(32,),
        critic_action_channels=16,
    )
    actor, critic = Actor(config), Critic(config)
    for errors in (actor_errors(actor, steps=20), critic_errors(critic, steps=20)):
        assert max(error.largest for error in errors) < 1e-4
    plain = Actor(dataclasses.replace(config, equivariant_lstm=False))
    assert max(error.largest for error in actor_errors(plain, steps=20)) > 1e-3


def test_a_memory_run_over_packed_episodes_equals_its_steps_one_by_one(gru):
    torch.manual_seed(0)
    memory, width = gru.Gru(), 6
    weight, bias = torch.randn(18, 4 + width), torch.randn(18)
    lengths = (5, 3, 1)
    episodes = [torch.randn(steps, 4) for steps in lengths]
    counts = torch.tensor([sum(steps > t for steps in lengths) for t in range(5)])
    packed = torch.cat([torch.stack([e[t] for e in episodes if len(e) > t]) for t in range(5)])
    zeros = torch.zeros(3, width)
    outputs, final = memory.run(weight, bias, packed, counts, LstmState(zeros, zeros))

    def linear(x, h):
        return torch.cat([x, h], dim=1) @ weight.t() + bias

    for index, episode in enumerate(episodes):
        state = LstmState(zeros[:1], zeros[:1])
        for step in episode:
            state = memory.step(linear, step[None], state)
        torch.testing.assert_close(final.hidden[index], state.hidden[0], atol=1e-5, rtol=0)
    assert outputs.shape == (9, width)


def test_the_fast_lstm_equals_the_one_written_out_by_steps():
    torch.manual_seed(0)
    weight, bias, inputs = torch.randn(24, 10), torch.randn(24), torch.randn(9, 4)
    counts, start = torch.tensor([3, 2, 2, 1, 1]), LstmState(torch.zeros(3, 6), torch.zeros(3, 6))
    fast, end = Lstm().run(weight, bias, inputs, counts, start)
    slow, slow_end = super(Lstm, Lstm()).run(weight, bias, inputs, counts, start)
    torch.testing.assert_close(fast, slow, atol=1e-5, rtol=0)
    torch.testing.assert_close(end.cell, slow_end.cell, atol=1e-5, rtol=0)


def test_an_agent_with_the_gru_learns_and_remembers(gru):
    config = RecurrentSacConfig(
        memory="gru",
        symmetry=MIRRORED_CARFLAG,
        encoder_channels=(8,),
        recurrent_channels=8,
        head_channels=(8,),
        random_steps=50,
        batch_episodes=4,
        updates_per_step=0.05,
    )
    agent = RecurrentSac(gymnasium.make("equi/ContinuousCarFlag-v0"), config)
    agent.learn(150)
    state = agent.start()
    _, after = agent.act(np.array([0.0, 1.0], np.float32), state)
    assert not torch.equal(state.memory.hidden, after.memory.hidden)


def test_a_memory_of_another_kind_cannot_take_a_name(gru):
    impostor = type("Impostor", (gru.Gru,), {"name": "lstm"})
    with pytest.raises(ValueError, match="memory 'lstm' is already Lstm"):
        register_memory(impostor())
    assert dense.memory_named("lstm").blocks == 4
