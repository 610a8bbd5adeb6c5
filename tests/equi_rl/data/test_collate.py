# SPDX-License-Identifier: MIT
"""Specification of packed batches: every frame and step of every episode, once, in its place."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from equi_core.contract import ACTION_ORDER
from equi_rl.data.collate import Augmentation, PixelAugmentation, collate
from equi_rl.data.episode import DEPTH_STEP_M, Episode

STILL = Augmentation(rotate=False)


def an_episode(number: int, steps: int, size=84, terminated=True) -> Episode:
    """Frame t of episode i has depth 100 i + t steps; its action z is a thousandth of that."""
    marks = 100 * number + np.arange(steps + 1)
    actions = np.zeros((steps, len(ACTION_ORDER)), dtype=np.float32)
    actions[:, 3] = marks[:-1] / 1000
    return Episode(
        depth=np.broadcast_to(marks[:, None, None], (steps + 1, size, size)).astype(np.uint16),
        holding=marks % 2 == 1,
        requested_action=actions,
        executed_action=0.5 * actions,
        reward=marks[:-1].astype(np.float32),
        terminated=terminated,
        expert_action=actions / 2,
    )


def depth_marks(depth_m) -> np.ndarray:
    """The mark of each packed frame, read back from its first pixel."""
    return np.round(depth_m[:, 0, 0].numpy() / DEPTH_STEP_M).astype(int)


def test_each_step_finds_its_frame_action_and_reward():
    episodes = [an_episode(0, 3), an_episode(1, 5), an_episode(2, 1)]
    labelled = collate(episodes, 84, np.random.default_rng(0), STILL)
    batch, layout = labelled.episodes, labelled.episodes.layout
    expected = [100 * e + t for e, t in zip(layout.step_episode, layout.step_time, strict=True)]
    marks = depth_marks(batch.depth_m)
    assert sorted(marks) == [0, 1, 2, 3, 100, 101, 102, 103, 104, 105, 200, 201]
    np.testing.assert_array_equal(marks[layout.frame_of_step], expected)
    np.testing.assert_array_equal(marks[layout.next_frame_of_step], np.array(expected) + 1)
    np.testing.assert_array_equal(batch.rewards, expected)
    np.testing.assert_allclose(batch.requested_actions[:, 3] * 1000, expected, rtol=1e-6)
    np.testing.assert_allclose(batch.executed_actions, batch.requested_actions / 2)
    np.testing.assert_allclose(labelled.expert_actions, batch.requested_actions / 2)
    np.testing.assert_array_equal(batch.holding, marks % 2)


def test_the_previous_action_is_zero_first_and_then_the_one_executed_before():
    batch = collate([an_episode(1, 4)], 84, np.random.default_rng(0), STILL).episodes
    previous = batch.layout.previous_actions(batch.executed_actions)
    np.testing.assert_allclose(previous[:, 3] * 2000, [0, 100, 101, 102, 103])


def test_only_the_end_of_the_task_stops_the_future():
    ended, timed_out = an_episode(0, 2), an_episode(1, 2, terminated=False)
    batch = collate([ended, timed_out], 84, np.random.default_rng(0), STILL).episodes
    by_mark = dict(zip(batch.rewards.tolist(), batch.terminated.tolist(), strict=True))
    assert by_mark == {0.0: 0.0, 1.0: 1.0, 100.0: 0.0, 101.0: 0.0}


def test_an_episode_turns_as_one():
    rng = np.random.default_rng(3)
    steps = 6
    actions = np.tile([0.0, 0.5, 0.0, 0.0, 0.3], (steps, 1)).astype(np.float32)
    image = np.zeros((84, 84), dtype=np.uint16)
    image[60:70, 38:46] = 5000  # ahead of the gripper: +x
    episode = Episode(
        depth=np.stack([image] * (steps + 1)),
        holding=np.zeros(steps + 1, dtype=bool),
        requested_action=actions,
        executed_action=actions,
        reward=np.zeros(steps, dtype=np.float32),
        terminated=False,
        expert_action=actions,
    )
    batch = collate([episode] * 5, 84, rng, Augmentation(rotate=True)).episodes
    layout = batch.layout
    directions = []
    for number in range(5):
        mine = batch.requested_actions[layout.step_episode == number]
        assert torch.all(mine == mine[0])
        np.testing.assert_allclose(torch.linalg.vector_norm(mine[0, 1:3]), 0.5, rtol=1e-5)
        assert mine[0, 4] == pytest.approx(0.3)
        directions.append(np.arctan2(mine[0, 2], mine[0, 1]))
        # The mark moved to where the rotated action points.
        depth = batch.depth_m[layout.frame_of_step[layout.step_episode == number][0]]
        rows, columns = np.nonzero(depth.numpy() > depth.min().item() + 1e-3)
        seen = np.arctan2(columns.mean() - 41.5, rows.mean() - 41.5)
        assert np.cos(seen - directions[-1]) > 0.99
    assert np.ptp(directions) > 0.1


@pytest.mark.parametrize("fit_square", [False, True])
def test_a_rotated_step_is_as_long_as_the_images_show_and_its_label_can_be_followed(fit_square):
    corner = np.tile([0.0, 1.0, -1.0, 0.0, 0.0], (2, 1)).astype(np.float32)
    episode = dataclasses.replace(
        an_episode(1, 2), requested_action=corner, executed_action=corner, expert_action=corner
    )
    augmentation = Augmentation(fit_square=fit_square)
    labelled = collate([episode] * 20, 84, np.random.default_rng(0), augmentation)
    batch = labelled.episodes
    for actions in (batch.requested_actions, batch.executed_actions):
        lengths = torch.linalg.vector_norm(actions[:, 1:3], dim=1)
        torch.testing.assert_close(lengths, torch.full_like(lengths, 2**0.5))
    assert (batch.requested_actions.abs().max() > 1.1) == (not fit_square)
    assert labelled.expert_actions.abs().max() <= 1.0 + 1e-6


def test_a_crop_takes_larger_images():
    batch = collate(
        [an_episode(0, 3, size=90)],
        84,
        np.random.default_rng(0),
        Augmentation(pixels=PixelAugmentation.CROP),
    )
    assert batch.episodes.depth_m.shape == (4, 84, 84)


def test_the_same_seed_gives_the_same_batch():
    episodes = [an_episode(0, 3), an_episode(1, 5)]
    one, two = (collate(episodes, 84, np.random.default_rng(7), Augmentation()) for _ in range(2))
    assert torch.equal(one.episodes.depth_m, two.episodes.depth_m)
    assert torch.equal(one.expert_actions, two.expert_actions)


def test_copies_of_an_episode_turn_alike_differ_in_pixels_and_know_each_other():
    rng = np.random.default_rng(3)
    episodes = [an_episode(0, 3), an_episode(1, 5)]
    noise = rng.integers(0, 3000, (4, 84, 84)).astype(np.uint16)
    episodes[0] = dataclasses.replace(episodes[0], depth=noise)
    drq = Augmentation(pixels=PixelAugmentation.SHIFT, copies=2)
    labelled = collate(episodes, 84, rng, drq)
    batch, layout = labelled.episodes, labelled.episodes.layout
    assert layout.n_steps == 2 * (3 + 5)
    assert batch.copy_group is not None
    for group in batch.copy_group.unique():
        one, two = torch.nonzero(batch.copy_group == group)[:, 0]
        assert layout.step_time[one] == layout.step_time[two]
        assert layout.step_episode[one] % 2 == layout.step_episode[two] % 2
        torch.testing.assert_close(batch.requested_actions[one], batch.requested_actions[two])
        assert batch.rewards[one] == batch.rewards[two]
        if layout.step_episode[one] % 2 == 0:
            frames = layout.frame_of_step[one], layout.frame_of_step[two]
            assert not torch.equal(batch.depth_m[frames[0]], batch.depth_m[frames[1]])


def test_states_of_the_simulator_lie_beside_their_steps_and_their_frames_rotate_along():
    def with_state(episode: Episode, number: int) -> Episode:
        marks = (100.0 * number + np.arange(len(episode) + 1)).astype(np.float32)
        return dataclasses.replace(
            episode, privileged_state=marks[:, None], privileged_frame_rad=marks / 1000
        )

    episodes = [with_state(an_episode(number, 2 + number), number) for number in range(3)]
    still = collate(episodes, 84, np.random.default_rng(0), STILL).episodes
    expected = 100 * still.layout.step_episode + still.layout.step_time
    np.testing.assert_array_equal(still.privileged_state[:, 0], expected)
    np.testing.assert_allclose(still.privileged_frame_rad, expected / 1000)
    turned = collate(episodes, 84, np.random.default_rng(0), Augmentation()).episodes
    np.testing.assert_array_equal(turned.privileged_state, still.privileged_state)
    # An episode's actions and frames are rotated by one angle.
    assert turned.privileged_frame_rad is not None
    assert still.privileged_frame_rad is not None
    angle = turned.privileged_frame_rad - still.privileged_frame_rad
    for number in range(3):
        assert len(set(angle[turned.layout.step_episode == number].round(decimals=4).tolist())) == 1
    missing = collate([*episodes, an_episode(3, 2)], 84, np.random.default_rng(0), STILL).episodes
    assert missing.privileged_state is None
