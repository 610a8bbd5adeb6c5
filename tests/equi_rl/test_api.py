# SPDX-License-Identifier: MIT
"""The Python API: what `import equi_rl` and `import equi_policy` offer."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from training_runs import a_tiny_run

import equi_policy
import equi_rl
from equi_core.contract import PolicyContract
from equi_core.scene_seeds import TEST_SEED
from equi_rl.envs.base import Outcome
from equi_rl.envs.picking import BlockPicking
from equi_rl.sim.scene import WorldState
from equi_rl.training.run_folder import RunFolderError


def test_importing_either_package_loads_neither_torch_nor_the_physics_engine():
    code = (
        "import sys, equi_rl, equi_policy;"
        "print([name for name in ('torch', 'pybullet', 'escnn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("package", [equi_rl, equi_policy])
def test_every_offered_name_exists_is_listed_and_is_documented(package):
    for name in package.__all__:
        thing = getattr(package, name)
        assert name in dir(package)
        if callable(thing):
            assert inspect.getdoc(thing), f"{package.__name__}.{name} has no docstring"


@pytest.mark.parametrize("package", [equi_rl, equi_policy])
def test_a_name_that_is_not_offered_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = package.no_such_name


def test_the_script_of_the_readme_runs_as_it_stands(repository_root, tmp_path, monkeypatch, capsys):
    text = (repository_root / "README.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len([line for line in script.splitlines() if line.strip()]) <= 15
    (tmp_path / "models").symlink_to(repository_root / "models")
    monkeypatch.chdir(tmp_path)
    exec(compile(script, "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert "success: True" in said
    assert "Rollout(seed=900000001" in said
    assert (tmp_path / "episode.gif").read_bytes()[:4] == b"GIF8"


def test_a_rollout_is_the_episode_that_the_policy_plays_by_hand(repository_root):
    policy = equi_rl.load_policy(repository_root / "models" / "block_picking")
    env = equi_rl.make_env("block_picking")
    observation, info = env.reset(seed=TEST_SEED)
    state, steps, ended = policy.start(), 0, False
    while not ended:
        action, state = policy.act(observation, state)
        observation, _, terminated, truncated, info = env.step(action)
        state = policy.executed(state, info["executed_action"])
        steps, ended = steps + 1, terminated or truncated
    env.close()
    result = equi_rl.rollout(policy, seed=TEST_SEED)
    assert (result.steps, result.success) == (steps, info["success"])


def test_both_packages_run_the_same_policy(repository_root):
    folder = repository_root / "models" / "block_picking"
    image = np.zeros((2, 84, 84), np.float32)
    image[0] = np.random.default_rng(0).uniform(0.0, 0.3, (84, 84))
    trained, robot = equi_rl.load_policy(folder), equi_policy.load_policy(folder)
    one, _ = trained.act(image, trained.start())
    two, _ = robot.act(image, robot.initial_state())
    np.testing.assert_allclose(one, two, atol=1e-5)


def test_a_policy_in_the_world_of_another_task_is_refused(repository_root):
    policy = equi_rl.load_policy(repository_root / "models" / "block_picking")
    env = equi_rl.make_env("block_pulling")
    with pytest.raises(ValueError, match=r"block_picking.*block_pulling"):
        equi_rl.rollout(policy, env)
    env.close()


def test_a_shipped_policy_is_equivariant_and_an_audit_says_so(repository_root):
    policy = equi_rl.load_policy(repository_root / "models" / "drawer_opening")
    errors = equi_rl.audit_policy(policy, steps=3, episodes=1)
    assert [str(error.element) for error in errors] == ["r0", "r1", "r2", "r3"]
    assert max(error.largest for error in errors) < 1e-3


def test_an_existing_model_is_not_overwritten(repository_root, tmp_path):
    with pytest.raises(FileExistsError, match="already holds a model"):
        equi_rl.export_policy(tmp_path, repository_root / "models" / "block_picking")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[equi_rl.TrainingResult, list[int]]:
    """A run of one round, and the rounds that it reported."""
    rounds: list[int] = []
    run = a_tiny_run(rounds=1, evaluate_every=1)
    folder = tmp_path_factory.mktemp("api") / "run"
    result = equi_rl.train(run, str(folder), report=lambda now, _: rounds.append(now.rounds))
    return result, rounds


@pytest.mark.slow
def test_a_run_is_trained_reported_and_leaves_its_best_checkpoint(trained):
    result, rounds = trained
    assert result.summary["rounds"] == 1
    assert result.summary["updates"] == 2  # one of imitation, one of the round
    assert rounds[-1] == 1
    assert result.best_checkpoint.is_dir()


@pytest.mark.slow
def test_a_finished_run_is_extended_only_when_asked_to(trained):
    result, _ = trained
    with pytest.raises(RunFolderError, match="--resume"):
        equi_rl.train(a_tiny_run(rounds=2, evaluate_every=1), result.folder)


@pytest.mark.slow
def test_an_exported_policy_acts_like_its_checkpoint_on_both_sides(trained, tmp_path):
    result, _ = trained
    contract = equi_rl.export_policy(str(result.best_checkpoint), str(tmp_path / "model"))
    assert contract == PolicyContract.load(tmp_path / "model" / "contract.json")
    assert (contract.task, contract.provenance.preset) == ("block_picking", "ship")
    image = np.zeros((2, 84, 84), np.float32)
    image[0] = np.random.default_rng(0).uniform(0.0, 0.3, (84, 84))
    checkpoint = equi_rl.load_policy(result.best_checkpoint)
    robot = equi_policy.load_policy(tmp_path / "model")
    one, _ = checkpoint.act(image, checkpoint.start())
    two, _ = robot.act(image, robot.initial_state())
    np.testing.assert_allclose(one, two, atol=1e-5)
    with pytest.raises(FileExistsError, match="already holds a model"):
        equi_rl.export_policy(result.best_checkpoint, tmp_path / "model")


class LopsidedPicking(BlockPicking):
    """Rewards a gripper on one side of the workspace: no rotation respects that."""

    def outcome(self, state: WorldState) -> Outcome:
        beyond = state.tcp_position_m[0] > self.contract.workspace.centre_xy_m[0]
        return Outcome(reward=1.0 if beyond else 0.0)


def test_an_audit_tells_a_symmetric_world_from_one_that_is_not():
    audits = equi_rl.audit_world("block_picking", "C4", episodes=1, steps=2, starts=20)
    assert [str(audit.element) for audit in audits][-3:] == ["r1", "r2", "r3"]
    assert max(audit.reward.largest for audit in audits) == 0.0
    assert max(audit.observation.largest for audit in audits) < 1e-3
    gymnasium.register("test/LopsidedPicking-v0", entry_point=LopsidedPicking)
    audits = equi_rl.audit_world("test/LopsidedPicking-v0", "C4", episodes=1, steps=2, starts=20)
    assert max(audit.reward.largest for audit in audits) == 1.0
    with pytest.raises(ValueError, match="juggling"):
        equi_rl.audit_world("juggling")
