# SPDX-License-Identifier: MIT
"""Law: a shipped policy stays the policy that was measured.

`stored/shipped_policy_actions.npz` holds the first steps of one episode per task: what the policy
saw, what was executed, and the actions of the release in which its success was measured.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equi_policy.deployed_policy import DeployedPolicy

STORED = Path(__file__).parent / "stored" / "shipped_policy_actions.npz"
DEPTH_STEP_M = np.float32(1e-5)
TASKS = ("block_picking", "block_pulling", "block_pushing", "drawer_opening")


@pytest.mark.parametrize("task", TASKS)
def test_a_shipped_policy_gives_the_stored_actions_on_the_stored_observations(
    task, repository_root
):
    policy = DeployedPolicy.load(repository_root / "models" / task)
    state = policy.initial_state()
    with np.load(STORED) as stored:
        depth, holding = stored[f"{task}.depth"], stored[f"{task}.holding"]
        executed, wanted = stored[f"{task}.executed"], stored[f"{task}.action"]
    actions = []
    for plane, flag, done in zip(depth, holding, executed, strict=True):
        image = plane.astype(np.float32) * DEPTH_STEP_M
        observation = np.stack([image, np.full_like(image, flag)])
        action, state = policy.act(observation, state)
        state = state.with_executed(done)
        actions.append(action)
    # Bit-equal on one machine; another processor may order sums differently.
    np.testing.assert_allclose(actions, wanted, atol=1e-6)
