# SPDX-License-Identifier: MIT
"""Specification of the episode buffer: nothing lost, demonstrations kept, time-outs told apart."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from equi_rl.data.episode import (
    DEPTH_STEP_M,
    Episode,
    EpisodeRecorder,
    ReplayError,
    pack_depth,
    unpack_depth,
)
from equi_rl.data.replay_buffer import EpisodeReplayBuffer, delete_files, stored_episodes


def an_episode(steps=3, tag=0.0, size=4, demonstration=False, terminated=True) -> Episode:
    """An episode that can be recognised by its first reward."""
    return Episode(
        depth=np.full((steps + 1, size, size), 7, dtype=np.uint16),
        holding=np.zeros(steps + 1, dtype=bool),
        requested_action=np.zeros((steps, 5), dtype=np.float32),
        executed_action=np.zeros((steps, 5), dtype=np.float32),
        reward=np.full(steps, tag, dtype=np.float32),
        terminated=terminated,
        expert_action=np.full((steps, 5), np.nan, dtype=np.float32),
        is_demonstration=demonstration,
    )


def tags(buffer) -> list[float]:
    return [float(episode.reward[0]) for episode in buffer]


def test_depth_survives_storage_to_within_half_a_step():
    depth_m = np.random.default_rng(0).uniform(0, 0.6, size=(5, 5))
    back = unpack_depth(pack_depth(depth_m))
    assert np.abs(back - depth_m).max() <= DEPTH_STEP_M / 2 + 1e-7


def test_a_recorded_episode_holds_what_was_recorded():
    rng = np.random.default_rng(0)
    observations = rng.uniform(0, 0.3, size=(4, 2, 6, 6)).astype(np.float32)
    observations[:, 1] = np.array([0, 1, 0, 1])[:, None, None]
    recorder = EpisodeRecorder(observations[0])
    actions = rng.uniform(-1, 1, size=(3, 5))
    for step in range(3):
        label = actions[step] / 2 if step == 1 else None
        clipped = actions[step].clip(-0.5, 0.5)
        recorder.add(actions[step], clipped, float(step == 2), observations[step + 1], label)
    episode = recorder.finish(terminated=True)

    assert len(episode) == 3
    assert episode.succeeded
    np.testing.assert_array_equal(episode.holding, [False, True, False, True])
    np.testing.assert_allclose(unpack_depth(episode.depth), observations[:, 0], atol=1e-5)
    np.testing.assert_allclose(episode.requested_action, actions, atol=1e-7)
    np.testing.assert_allclose(episode.executed_action, actions.clip(-0.5, 0.5), atol=1e-7)
    np.testing.assert_array_equal(np.isnan(episode.expert_action[:, 0]), [True, False, True])


def test_a_time_out_is_not_a_success_even_with_a_reward():
    assert not an_episode(tag=1.0, terminated=False).succeeded


def test_the_oldest_episodes_leave_first_and_demonstrations_stay():
    buffer = EpisodeReplayBuffer(capacity=10)
    buffer.add(an_episode(tag=1, demonstration=True))
    for tag in (2, 3, 4, 5):
        buffer.add(an_episode(tag=tag))
    assert tags(buffer) == [1, 4, 5]
    assert buffer.n_transitions == 9


def test_demonstrations_alone_may_not_exceed_the_capacity():
    buffer = EpisodeReplayBuffer(capacity=5)
    buffer.add(an_episode(steps=3, demonstration=True))
    with pytest.raises(ReplayError, match="capacity"):
        buffer.add(an_episode(steps=3, demonstration=True))
    assert len(buffer) == 1


def test_every_stored_episode_can_be_drawn_and_the_share_of_demonstrations_is_kept():
    buffer = EpisodeReplayBuffer()
    buffer.add(an_episode(tag=0, demonstration=True))
    for tag in (1, 2, 3):
        buffer.add(an_episode(tag=tag))
    rng = np.random.default_rng(0)
    drawn = [buffer.sample(8, rng, n_demonstrations=4) for _ in range(50)]
    assert all(episode.is_demonstration for batch in drawn for episode in batch[:4])
    assert {float(e.reward[0]) for batch in drawn for e in batch[4:]} == {0, 1, 2, 3}
    assert all(len(batch) == 8 for batch in drawn)


def test_drawing_is_reproducible():
    buffer = EpisodeReplayBuffer()
    for tag in range(5):
        buffer.add(an_episode(tag=tag))
    one = buffer.sample(6, np.random.default_rng(3))
    two = buffer.sample(6, np.random.default_rng(3))
    assert [id(e) for e in one] == [id(e) for e in two]


def test_a_hundred_thousand_transitions_fit_in_two_gibibytes():
    episode = an_episode(steps=15, size=84)
    per_transition = episode.n_bytes / len(episode)
    assert per_transition * 100_000 < 2 * 2**30


def test_a_killed_run_reads_its_episodes_back(tmp_path):
    buffer = EpisodeReplayBuffer(capacity=10, folder=tmp_path)
    buffer.add(an_episode(tag=1, demonstration=True))
    for tag in (2, 3, 4):
        buffer.add(an_episode(tag=tag))
    at_checkpoint = buffer.n_added
    assert tags(buffer) == [1, 3, 4]
    buffer.add(an_episode(tag=9))  # after the checkpoint: the continued run will not know it

    again = EpisodeReplayBuffer(capacity=10, folder=tmp_path)
    again.restore(at_checkpoint)
    assert tags(again) == [1, 3, 4]  # although 9 had evicted 3
    again.add(an_episode(tag=5))
    assert tags(again) == [1, 4, 5]


def test_evicted_episodes_leave_the_disk_when_they_are_forgotten(tmp_path):
    buffer = EpisodeReplayBuffer(capacity=6, folder=tmp_path)
    for tag in (1, 2, 3, 4):
        buffer.add(an_episode(tag=tag))
    assert len(list(tmp_path.iterdir())) == 4
    delete_files(buffer.take_evicted())
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "episode_00000002.npz",
        "episode_00000003.npz",
    ]
    again = EpisodeReplayBuffer(capacity=6, folder=tmp_path)
    again.restore(4)
    assert tags(again) == tags(buffer) == [3, 4]


def test_an_episode_half_written_at_the_kill_is_not_read(tmp_path):
    buffer = EpisodeReplayBuffer(folder=tmp_path)
    buffer.add(an_episode(tag=1))
    (tmp_path / "episode_00000001.partial").write_bytes(b"half an episode")
    again = EpisodeReplayBuffer(folder=tmp_path)
    again.restore(2)
    assert tags(again) == [1]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"not an archive",
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:60] + bytes(20) + data[80:],
    ],
)
def test_a_damaged_file_is_named(tmp_path, damage):
    EpisodeReplayBuffer(folder=tmp_path).add(an_episode())
    path = tmp_path / "episode_00000000.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ReplayError, match="episode_00000000"):
        EpisodeReplayBuffer(folder=tmp_path).restore(1)


def test_an_empty_memory_says_what_to_do():
    with pytest.raises(ReplayError, match="empty"):
        EpisodeReplayBuffer().sample(1, np.random.default_rng(0))


def test_arrays_that_do_not_fit_together_are_refused_by_name():
    good = an_episode()
    with pytest.raises(ReplayError, match="holding"):
        Episode(
            depth=good.depth,
            holding=good.holding[:-1],
            requested_action=good.requested_action,
            executed_action=good.executed_action,
            reward=good.reward,
            terminated=True,
            expert_action=good.expert_action,
        )


def test_a_stored_episode_keeps_what_was_requested_beside_what_was_executed(tmp_path):
    requested = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)
    episode = dataclasses.replace(
        an_episode(), requested_action=requested, executed_action=requested / 2
    )
    EpisodeReplayBuffer(folder=tmp_path).add(episode)
    restored = EpisodeReplayBuffer(folder=tmp_path)
    restored.restore(1)
    (found,) = restored
    np.testing.assert_array_equal(found.requested_action, requested)
    np.testing.assert_array_equal(found.executed_action, requested / 2)


def an_episode_of_format_1(folder, demonstration: bool) -> None:
    """As it was written before requested actions were stored."""
    good = an_episode(demonstration=demonstration)
    np.savez_compressed(
        folder / "episode_00000000.npz",
        depth=good.depth,
        holding=good.holding,
        action=good.executed_action + np.float32(0.25),
        reward=good.reward,
        expert_action=good.expert_action,
        flags=np.array([True, demonstration]),
    )


def test_an_old_demonstration_requested_what_it_executed(tmp_path):
    an_episode_of_format_1(tmp_path, demonstration=True)
    (found,) = stored_episodes(tmp_path, 1)
    assert (found.requested_action == 0.25).all()
    assert (found.executed_action == 0.25).all()


def test_an_old_episode_of_a_policy_is_refused_because_its_requests_are_lost(tmp_path):
    an_episode_of_format_1(tmp_path, demonstration=False)
    with pytest.raises(
        ReplayError, match=r"episode_00000000.npz has episode format 1; this code reads 2.*new run"
    ):
        list(stored_episodes(tmp_path, 1))


def test_the_simulators_state_is_stored_with_its_episode_where_it_was_recorded(tmp_path):
    with_state = dataclasses.replace(
        an_episode(steps=2),
        privileged_state=np.arange(9, dtype=np.float32).reshape(3, 3),
        privileged_frame_rad=np.array([0.1, 0.2, 0.3], dtype=np.float32),
    )
    buffer = EpisodeReplayBuffer(100, tmp_path)
    buffer.add(with_state)
    buffer.add(an_episode())
    one, two = stored_episodes(tmp_path, 2)
    np.testing.assert_array_equal(one.privileged_state, with_state.privileged_state)
    np.testing.assert_array_equal(one.privileged_frame_rad, with_state.privileged_frame_rad)
    assert two.privileged_state is None
    with pytest.raises(ReplayError, match=r"privileged_state has shape \(3, 3\); .* \(4, 3\)"):
        dataclasses.replace(an_episode(steps=3), privileged_state=with_state.privileged_state)


def test_some_of_a_batch_can_come_from_the_newest_episodes():
    buffer = EpisodeReplayBuffer()
    buffer.add(an_episode(tag=-1.0, demonstration=True))
    rng = np.random.default_rng(0)
    # Before anything was collected, there are only demonstrations to draw from.
    assert tags(buffer.sample(4, rng, 1, n_recent=2, recent_episodes=3)) == [-1.0] * 4
    for tag in range(50):
        buffer.add(an_episode(tag=float(tag)))
    drawn = tags(buffer.sample(300, rng, 1, n_recent=200, recent_episodes=3))
    assert drawn[0] == -1.0
    assert set(drawn[1:201]) == {47.0, 48.0, 49.0}
    assert len(set(drawn[201:])) > 20
