# SPDX-License-Identifier: MIT
"""Specification of the recorded LSTM: the same numbers and gradients as a graph of single steps."""

from __future__ import annotations

import pytest
import torch

from equi_rl.carflag.memories.recorded_lstm import LstmState, RecordedLstm, lstm_cell

STEPS, LEARNERS, BATCH, CHANNELS = 9, 3, 5, 4


@pytest.fixture
def episode():
    """Embeddings, weights, a start that is not zero, and where episodes end (about one in four)."""
    generator = torch.Generator().manual_seed(3)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    embeddings = normal(STEPS, LEARNERS, BATCH, 4 * CHANNELS)
    recurrent = normal(LEARNERS, CHANNELS, 4 * CHANNELS)
    start = LstmState(*normal(2, LEARNERS, BATCH, CHANNELS))
    alive = torch.rand(STEPS, LEARNERS, BATCH, 1, generator=generator) > 0.25
    alive[4] = True  # a step at which nothing ends
    return embeddings, recurrent, start, alive, normal(STEPS, LEARNERS, BATCH, CHANNELS)


def record(embeddings, recurrent, state, alive):
    recording = RecordedLstm()
    for embedding, stays in zip(embeddings, alive, strict=True):
        state = recording.step({"lstm_h": recurrent}, embedding, state)
        if not stays.all():
            state = recording.end_episodes(stays)
    return recording, state


def unrolled(embeddings, recurrent, state, alive):
    """The definition: autograd follows every step."""
    outputs = []
    for embedding, stays in zip(embeddings, alive, strict=True):
        state, _ = lstm_cell(embedding, recurrent, state)
        outputs.append(state.hidden)
        state = state.keep(stays)
    return torch.stack(outputs), state


def test_recorded_steps_are_the_steps_of_the_cell(episode):
    embeddings, recurrent, start, alive, _ = episode
    recording, last = record(embeddings, recurrent, start, alive)
    hidden, expected_last = unrolled(embeddings, recurrent, start, alive)
    assert torch.equal(recording.outputs({"lstm_h": recurrent}, embeddings), hidden)
    assert torch.equal(last.hidden, expected_last.hidden)
    assert torch.equal(last.cell, expected_last.cell)


def test_gradients_are_those_of_a_graph_through_every_step(episode):
    embeddings, recurrent, start, alive, cotangent = episode
    inputs = (embeddings.requires_grad_(), recurrent.requires_grad_())
    recording, _ = record(embeddings.detach(), recurrent.detach(), start, alive)
    found = torch.autograd.grad(
        recording.outputs({"lstm_h": inputs[1]}, inputs[0]), inputs, cotangent
    )
    hidden, _ = unrolled(*inputs, start, alive)
    expected = torch.autograd.grad(hidden, inputs, cotangent)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_no_gradient_crosses_the_end_of_an_episode(episode):
    embeddings, recurrent, start, alive, _ = episode
    alive = torch.ones_like(alive)
    alive[3, 1, 2] = False
    embeddings.requires_grad_()
    recording, _ = record(embeddings.detach(), recurrent, start, alive)
    (gradient,) = torch.autograd.grad(
        recording.outputs({"lstm_h": recurrent}, embeddings)[-1].sum(), embeddings
    )
    before = gradient[: 3 + 1].abs().amax(dim=(0, 3))
    assert before[1, 2] == 0
    assert (before > 0).sum() == LEARNERS * BATCH - 1
