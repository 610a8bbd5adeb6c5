# SPDX-License-Identifier: MIT
"""Law: a shipped policy stays the policy that was measured.

`stored/shipped_policy_actions.npz` holds the first steps of one episode per task: what the policy
saw, what was executed, and its actions. Each was recorded when its policy was exported; the policy
for drawers saw the stored observations of its predecessor. The policies for pulling and pushing are
older than the form in which filters are stored once, which rounds them: `action_before_tying` are
those of the release in which their success was measured. The largest difference found then was
1.43e-6, and the bound on it below was set after that; it says how much tying changed, not how much
may change from now on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from equi_policy.deployed_policy import DeployedPolicy

STORED = Path(__file__).parent / "stored" / "shipped_policy_actions.npz"
DEPTH_STEP_M = np.float32(1e-5)
TASKS = ("block_picking", "block_pulling", "block_pushing", "drawer_opening")
ROUNDING_OF_TYING = 2e-6


@pytest.mark.parametrize("task", TASKS)
def test_a_shipped_policy_gives_the_stored_actions_on_the_stored_observations(
    task, repository_root
):
    actions, stored = replayed(task, repository_root)
    # Bit-equal on one machine; another processor may order sums differently.
    np.testing.assert_allclose(actions, stored[f"{task}.action"], atol=1e-6)


@pytest.mark.parametrize("task", ["block_pulling", "block_pushing"])
def test_tying_the_filters_changed_the_actions_by_rounding_only(task, repository_root):
    actions, stored = replayed(task, repository_root)
    before = stored[f"{task}.action_before_tying"]
    np.testing.assert_allclose(actions, before, rtol=0.0, atol=ROUNDING_OF_TYING)


def replayed(task, repository_root):
    """Actions on the stored observations, and everything stored."""
    policy = DeployedPolicy.load(repository_root / "models" / task)
    state = policy.initial_state()
    with np.load(STORED) as file:
        stored = dict(file)
    actions = []
    for plane, flag, done in zip(
        *(stored[f"{task}.{name}"] for name in ("depth", "holding", "executed")), strict=True
    ):
        image = plane.astype(np.float32) * DEPTH_STEP_M
        action, state = policy.act(np.stack([image, np.full_like(image, flag)]), state)
        state = state.with_executed(done)
        actions.append(action)
    return actions, stored
