# SPDX-License-Identifier: MIT
"""Learning on another device than the CPU: everything is where it belongs, with the same numbers.

No GPU is used: `placed_tensors` stands for one. What it cannot show is speed and CUDA's rounding.
"""

from __future__ import annotations

import ast
import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from placed_tensors import MixedDevicesError, PlacedTensor, another_device
from small_networks import tiny_config

import equi_rl
from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.agents.asymmetric_learner import AsymmetricLearner
from equi_rl.agents.asymmetric_settings import AsymmetricSettings
from equi_rl.agents.imitation import ImitationSettings
from equi_rl.agents.learner import ImitationLearner, SacLearner
from equi_rl.agents.sac_settings import Encoder, SacSettings
from equi_rl.data.collate import Augmentation, LabelledBatch, PixelAugmentation, collate
from equi_rl.data.device import HOST, DeviceError, choose_device
from equi_rl.data.device_augmentation import host_steps, rotate_frames, unpack
from equi_rl.data.episode import Episode
from equi_rl.data.image_kernels import rotate_into
from equi_rl.data.prefetch import prefetched
from equi_rl.data.replay_buffer import EpisodeReplayBuffer
from equi_rl.nets import dense
from equi_rl.nets.agent import build_agent, on_device
from equi_rl.nets.config import Combination
from equi_rl.nets.weights_digest import weights_digest

SIZE = 16


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.hosted if isinstance(tensor, PlacedTensor) else tensor


def an_episode(seed: int, length: int = 4, size: int = SIZE) -> Episode:
    rng = np.random.default_rng(seed)
    action = rng.uniform(-0.6, 0.6, (length, 5)).astype(np.float32)
    return Episode(
        depth=rng.integers(0, 60_000, (length + 1, size, size), dtype=np.uint16),
        holding=rng.random(length + 1) < 0.5,
        requested_action=action,
        executed_action=0.9 * action,
        reward=np.eye(length, dtype=np.float32)[-1],
        terminated=True,
        expert_action=action,
        is_demonstration=seed % 2 == 0,
        privileged_state=rng.random((length + 1, 6)).astype(np.float32),
        privileged_frame_rad=rng.random(length + 1).astype(np.float32),
    )


EPISODES = [an_episode(seed, length) for seed, length in enumerate((4, 2, 3))]


def a_batch(device: torch.device, augmentation: Augmentation | None = None) -> LabelledBatch:
    rng = np.random.default_rng(0)
    return collate(EPISODES, SIZE, rng, augmentation or Augmentation(), device)


def learners(device: torch.device):
    """One of every kind, with the same weights on any device."""
    torch.manual_seed(0)
    imitation = ImitationSettings(updates=1, log_std=-1.0)
    for encoder in Encoder:
        actor, critic = (
            on_device(part, device) for part in build_agent("equivariant", tiny_config())
        )
        own = encoder is Encoder.SEPARATE
        settings = SacSettings(encoder=encoder, actor_uses_updated_critic=own)
        yield SacLearner(actor, critic, settings, imitation)
    actor, critic = (
        on_device(part, device) for part in build_agent(Combination.PLAIN, tiny_config())
    )
    yield SacLearner(actor, critic, SacSettings(critic_heads=2, td_lambda=0.5), imitation)
    yield ImitationLearner(
        on_device(build_agent("equivariant", tiny_config())[0], device), imitation, 2
    )
    actor = on_device(build_agent("equivariant", tiny_config())[0], device)
    asymmetric = AsymmetricSettings(heads=2, width=8, actor_frozen_updates=1)
    reward = AsymmetricLearner(actor, 6, asymmetric, imitation, 4)
    buffer = EpisodeReplayBuffer(1000)
    for episode in EPISODES:
        buffer.add(episode)
    reward.attach(buffer)
    yield reward


def learnt(device: torch.device) -> list[dict[str, float]]:
    """Losses, norms of gradients, values and diagnostics of a few updates of every learner."""
    found = []
    for learner in learners(device):
        torch.manual_seed(1)
        for update in range(3):
            batch = a_batch(device, Augmentation(rotate=False))
            found.append(learner.update(batch, diagnose=update == 2))
        assert learner.policy().device == HOST
    return found


def test_every_learner_works_on_another_device_and_learns_the_same(monkeypatch):
    # The host's own bfloat16 aside, only rounding can differ; Adam amplifies it a little.
    monkeypatch.setattr(dense, "convolution_dtype", lambda device: torch.float32)
    expected = learnt(HOST)
    with another_device() as device:
        found = learnt(device)
    assert len(expected) == 18
    for one, two in zip(expected, found, strict=True):
        assert one == pytest.approx(two, rel=2e-3, abs=1e-4)


def test_the_control_of_the_above_a_misplaced_tensor_is_noticed():
    with another_device() as device:
        batch = a_batch(device)
        (learner, *_) = learners(device)
        learner._pretraining.updates = 1
        misplaced = copy.copy(batch.episodes)
        object.__setattr__(misplaced, "rewards", torch.zeros(len(on_host(batch.episodes.rewards))))
        with pytest.raises(MixedDevicesError):
            learner.update(LabelledBatch(misplaced, batch.expert_actions))


def test_a_policy_acts_on_either_device_and_is_handed_out_on_the_host():
    actor = build_agent("equivariant", tiny_config())[0]
    observation = np.random.default_rng(0).random((2, SIZE, SIZE)).astype(np.float32) * 0.3
    policy = ActingPolicy.of(actor)
    expected, _ = policy.act(observation, np.zeros(5), policy.start(0), np.random.default_rng(1))
    with another_device() as device:
        assert ActingPolicy.of(on_device(actor, device)).device == HOST
        moved = policy.to(device)
        assert moved.device == device
        # The accelerator's tensors have no numpy; the policy brings its answer back itself.
        raw = moved.start(0)
        assert all(isinstance(part, PlacedTensor) for part in raw)
    np.testing.assert_array_equal(
        policy.to(HOST).act(observation, np.zeros(5), policy.start(0), np.random.default_rng(1))[0],
        expected,
    )


@pytest.mark.parametrize("pixels", list(PixelAugmentation))
def test_a_batch_made_for_another_device_shows_the_same(pixels):
    episodes = [an_episode(seed, size=20) for seed in range(3)]
    shown = 20 if pixels is not PixelAugmentation.CROP else 16
    augmentation = Augmentation(pixels=pixels, copies=2)
    expected = collate(episodes, shown, np.random.default_rng(3), augmentation)
    with another_device() as device:
        found = collate(episodes, shown, np.random.default_rng(3), augmentation, device)
    for name in ("depth_m", "holding", "requested_actions", "rewards", "privileged_state"):
        one, two = (getattr(batch.episodes, name) for batch in (expected, found))
        assert isinstance(two, PlacedTensor)
        torch.testing.assert_close(one.float(), two.hosted.float(), rtol=0, atol=2e-6)
    layout = found.episodes.layout
    assert not isinstance(layout.step_counts, PlacedTensor)  # the LSTM reads them on the host
    assert isinstance(layout.frame_of_step, PlacedTensor)


@pytest.mark.parametrize("angle_rad", [0.0, 0.3, np.pi / 2, 2.0, np.pi, 5.5])
def test_rotation_on_a_device_is_that_of_the_host(angle_rad):
    steps = np.random.default_rng(0).integers(0, 65_536, (3, 21, 21), dtype=np.uint16)
    room = host_steps(3, 21, HOST)
    room.numpy().view(np.uint16)[:] = steps
    expected = np.empty((3, 21, 21), dtype=np.float32)
    rotate_into(expected, np.arange(3), steps, angle_rad, 1e-5)
    found = rotate_frames(unpack(room, HOST), [angle_rad], torch.zeros(3, dtype=torch.int64))
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=5e-6)


def test_batches_made_ahead_are_those_that_would_have_been_made():
    def digests(batches) -> list[str]:
        return [weights_digest({"depth": batch.episodes.depth_m}) for batch in batches]

    def maker():
        rng = np.random.default_rng(7)
        return rng, lambda: collate(EPISODES, SIZE, rng, Augmentation())

    rng, make = maker()
    expected = digests(make() for _ in range(4))
    ahead_rng, make = maker()
    assert digests(prefetched(make, 4)) == expected
    assert ahead_rng.bit_generator.state == rng.bit_generator.state  # and not one more
    assert list(prefetched(make, 0)) == []


def test_an_error_in_a_batch_made_ahead_is_raised():
    def fail() -> int:
        raise ValueError("no such episode")

    with pytest.raises(ValueError, match="no such episode"):
        list(prefetched(fail, 2))


def test_the_device_is_chosen_by_name():
    assert choose_device("cpu") == HOST
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert choose_device("auto") == HOST
    with pytest.raises(DeviceError, match="torch finds no GPU here"):
        choose_device("cuda")


# No hard-coded devices ----------------------------------------------------------------------------

LEARNING = ("agents", "data", "nets", "training")
NAMES_DEVICES = "data/device.py"
MAKES_TENSORS = {"zeros", "ones", "empty", "full", "arange", "rand", "randn", "randperm", "eye"}
# Parameters and settings, made where modules are made and moved with them; and made-up input.
MAY_MAKE_ON_HOST = {
    *("agents/state_critic.py", "nets/layers.py", "nets/symmetry.py", "nets/equivariance.py"),
    *("agents/acting_policy.py", "data/episode_batch.py"),
}


def sources():
    root = Path(equi_rl.__file__).parent
    for folder in LEARNING:
        for path in sorted((root / folder).glob("*.py")):
            yield path.relative_to(root).as_posix(), ast.parse(path.read_text())


def test_no_module_of_learning_names_a_device_itself():
    found = [
        f"{name}:{node.lineno}"
        for name, tree in sources()
        if name != NAMES_DEVICES
        for node in ast.walk(tree)
        if (isinstance(node, ast.Constant) and node.value in ("cpu", "cuda", "cuda:0", "mps"))
        or (isinstance(node, ast.Attribute) and node.attr in ("cuda", "is_cuda"))
    ]
    assert found == []


def test_every_tensor_of_an_update_is_made_on_a_device_that_was_thought_of():
    found = [
        f"{name}:{node.lineno} torch.{node.func.attr}"
        for name, tree in sources()
        if name not in {NAMES_DEVICES, *MAY_MAKE_ON_HOST}
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "torch"
        and node.func.attr in MAKES_TENSORS
        and not any(keyword.arg == "device" for keyword in node.keywords)
    ]
    assert found == []
