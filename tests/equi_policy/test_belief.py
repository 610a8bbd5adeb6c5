# SPDX-License-Identifier: MIT
"""The belief of a deployed policy: objects are found in its own image, and turn with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from equi_core.belief.probe import BeliefProbe, PlaneBasis
from equi_core.contract import ImageSpec
from equi_core.observation.image import compose_observation, pixel_centres_m
from equi_policy.belief import Glance, beliefs, objects_in
from equi_policy.deployed_policy import DeployedPolicy

SPEC = ImageSpec()
TCP_Z_M = 0.2
BLOCKS_M = ((0.08, -0.05), (-0.06, 0.09))


def glance(blocks_m: tuple[tuple[float, float], ...], yaw_rad: float = 0.3) -> Glance:
    """Cubes of 5 cm on the table, drawn as perception does it."""
    x, y = pixel_centres_m(SPEC)[:, None], pixel_centres_m(SPEC)[None, :]
    heights = np.zeros((SPEC.size_px, SPEC.size_px), dtype=np.float32)
    for at_x, at_y in blocks_m:
        heights[(abs(x - at_x) <= 0.025) & (abs(y - at_y) <= 0.025)] = 0.05
    image = compose_observation(heights, (0.5, 0.0, TCP_Z_M), yaw_rad, 1.0, False, SPEC)
    return Glance(image, TCP_Z_M, yaw_rad, 1.0)


def turned(seen: Glance) -> Glance:
    image = np.rot90(seen.image, 1, axes=(-2, -1)).copy()
    return Glance(image, seen.tcp_z_m, seen.yaw_rad + np.pi / 2, seen.opening)


def test_blocks_are_found_and_fingers_are_not() -> None:
    found = sorted(objects_in(glance(BLOCKS_M), SPEC))
    np.testing.assert_allclose(found, sorted(BLOCKS_M), atol=SPEC.pixel_m / 2)


def test_a_block_between_the_fingers_is_still_one_object() -> None:
    assert len(objects_in(glance(((0.0, 0.0), (0.1, 0.1)), yaw_rad=0.0), SPEC)) == 2


@pytest.fixture(scope="module")
def policy(repository_root: Path) -> DeployedPolicy:
    return DeployedPolicy.load(repository_root / "models" / "block_picking")


@pytest.fixture(scope="module")
def probe(policy: DeployedPolicy) -> BeliefProbe:
    basis, channels = PlaneBasis(), policy.layout.recurrent_channels
    weights = np.random.default_rng(2).normal(size=(2 * channels // 4, basis.count))
    return BeliefProbe("C4", ("hidden", "cell"), channels, basis, weights)


def test_the_belief_of_a_turned_scene_is_that_of_the_scene_turned(
    policy: DeployedPolicy, probe: BeliefProbe
) -> None:
    seen, state = glance(BLOCKS_M), policy.initial_state()
    seen_turned, state_turned = turned(seen), policy.initial_state()
    for step in range(4):
        state = policy.step(seen.image, state).state
        state_turned = policy.step(seen_turned.image, state_turned).state
        w, x, y, z, r = executed = np.array([0.1, 0.3, -0.2, 0.1 * step, 0.2])
        state = state.with_executed(executed)
        state_turned = state_turned.with_executed([w, -y, x, z, r])
    plain = {item.place_m: item.probability for item in beliefs(probe, state, seen, SPEC)}
    for item in beliefs(probe, state_turned, seen_turned, SPEC):
        x, y = item.place_m
        back = min(plain, key=lambda place: np.hypot(place[0] - y, place[1] + x))
        np.testing.assert_allclose(back, (y, -x), atol=1e-12)
        assert item.probability == pytest.approx(plain[back], abs=1e-4)  # rounding of the network


def test_one_object_alone_is_no_question(policy: DeployedPolicy, probe: BeliefProbe) -> None:
    assert beliefs(probe, policy.initial_state(), glance(BLOCKS_M[:1]), SPEC) == []


def test_what_shows_the_belief_is_loaded_with_the_model_and_not_in_mid_episode(
    repository_root: Path,
) -> None:
    # On a busy machine the import takes seconds, in which the node would give no sign of life.
    folder = repository_root / "models" / "block_picking"
    code = f"""
import sys
from pathlib import Path
from unittest.mock import MagicMock
from equi_core.contract import PolicyContract
from equi_policy.ros_belief import BeliefPublisher
folder = Path({str(folder)!r})
shown = BeliefPublisher(MagicMock())
assert "equi_policy.belief" not in sys.modules
shown.load(folder, PolicyContract.load(folder / "contract.json"))
assert "equi_policy.belief" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
