# SPDX-License-Identifier: MIT
"""Specification of the cache of demonstrations: the same episodes, played once, not of old code."""

from __future__ import annotations

import numpy as np
import pytest

from equi_rl.data.episode import Episode
from equi_rl.experts import ExpertConfig, FirstChoice
from equi_rl.nets.weights_digest import weights_digest
from equi_rl.training import demonstration_cache
from equi_rl.training.collector import CollectorConfig
from equi_rl.training.demonstration_cache import DemonstrationCache, default_folder
from equi_rl.training.rollout import EpisodeOutcome

CONFIG = CollectorConfig("block_picking", ExpertConfig())


class CountingCollector:
    """Plays recognisable episodes and writes down which; odd seeds fail."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def play(self, work):
        self.asked += work.seeds
        return [
            (an_episode(seed), EpisodeOutcome(seed, 2, seed % 2 == 0, "", None))
            for seed in work.seeds
        ]


def an_episode(seed: int) -> Episode:
    rng = np.random.default_rng(seed)
    action = rng.random((2, 5)).astype(np.float32)
    return Episode(
        depth=rng.integers(0, 9, (3, 4, 4), dtype=np.uint16),
        holding=np.zeros(3, dtype=bool),
        requested_action=action,
        executed_action=action,
        reward=np.array([0.0, float(seed % 2 == 0)], dtype=np.float32),
        terminated=seed % 2 == 0,
        expert_action=action,
        is_demonstration=True,
    )


def same(one: Episode, two: Episode) -> bool:
    arrays = ("depth", "holding", "requested_action", "executed_action", "reward", "expert_action")
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in arrays)


def test_an_episode_is_played_once_and_read_afterwards(tmp_path):
    collector = CountingCollector()
    first = DemonstrationCache(CONFIG, tmp_path).play(collector, (4, 5, 6))
    cache = DemonstrationCache(CONFIG, tmp_path)
    second = cache.play(collector, (6, 7, 4))
    assert collector.asked == [4, 5, 6, 7]
    assert cache.n_read == 2
    assert [success for _, success in first] == [True, False, True]
    assert [success for _, success in second] == [True, False, True]
    assert same(second[0][0], first[2][0])
    assert same(second[2][0], first[0][0])


@pytest.mark.parametrize("what", ["code", "settings", "task"])
def test_other_code_or_settings_play_their_own(what, tmp_path, monkeypatch):
    collector = CountingCollector()
    DemonstrationCache(CONFIG, tmp_path).play(collector, (0,))
    config = CONFIG
    if what == "code":
        monkeypatch.setattr(demonstration_cache, "code_digest", lambda: "changed")
    elif what == "settings":
        config = CollectorConfig("block_picking", ExpertConfig(first_choice=FirstChoice.NEAREST))
    else:
        config = CollectorConfig("block_pulling", ExpertConfig())
    assert config != CONFIG or what == "code"
    DemonstrationCache(config, tmp_path).play(collector, (0,))
    assert collector.asked == [0, 0]


def test_a_spoilt_file_is_played_again(tmp_path):
    collector = CountingCollector()
    DemonstrationCache(CONFIG, tmp_path).play(collector, (2,))
    (path,) = tmp_path.rglob("*.npz")
    path.write_bytes(path.read_bytes()[:40])
    ((episode, _),) = DemonstrationCache(CONFIG, tmp_path).play(collector, (2,))
    assert collector.asked == [2, 2]
    assert same(episode, an_episode(2))


def test_an_empty_name_switches_it_off(tmp_path, monkeypatch):
    monkeypatch.setenv("EQUI_CACHE", "")
    assert default_folder() is None
    collector = CountingCollector()
    for _ in range(2):
        DemonstrationCache(CONFIG).play(collector, (0,))
    assert collector.asked == [0, 0]
    monkeypatch.setenv("EQUI_CACHE", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("EQUI_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "equi_rl"


def test_a_digest_differs_by_any_bit_name_or_shape():
    import torch

    base = {"a": torch.zeros(4), "b": torch.ones(2)}
    digest = weights_digest(base)
    assert digest == weights_digest({"b": torch.ones(2), "a": torch.zeros(4)})
    changed = [
        {**base, "a": torch.tensor([0.0, 0.0, 0.0, -0.0])},
        {**base, "a": torch.zeros(2, 2)},
        {"c": base["a"], "b": base["b"]},
        {**base, "b": torch.ones(2, dtype=torch.float64)},
    ]
    assert len({digest, *(weights_digest(tensors) for tensors in changed)}) == 5
