# SPDX-License-Identifier: MIT
"""LSTM whose steps are recorded while playing, so that its gradient is one backward sweep.

One step, with gates ``z = embedding + h W`` in the order of ``GATES``:

    o, i, f = sigmoid(z_o, z_i, z_f)     n = tanh(z_n)
    c' = f c + i n                       h' = o tanh(c')

An actor chooses its actions step by step, without a graph; what the gradient needs is kept on the
recording. Afterwards `Replay` hands the recorded hidden vectors to autograd and runs

    dh  = given + alive dh_next          dc  = alive dc_next + dh o (1 - tanh(c')^2)
    dz  = (dh tanh(c') o (1-o),  dc n i (1-i),  dc c f (1-f),  dc i (1-n^2))
    dc_prev = dc f                       dh_prev = dz W^T

Gradients of all steps' weights are one matrix product at the end, where a graph of single steps
would add up one matrix per step; for networks this small that is most of the time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from equi_rl.carflag.memories.memory import ArraySpec
from equi_rl.nets.symmetry import Layout, regular

HIDDEN = 64  # channels: 32 regular fields of the flip group, 16 of C4
GATES = ("output", "input", "forget", "candidate")


class LstmState(NamedTuple):
    """Hidden and cell vectors, each (learners, batch, channels)."""

    hidden: Tensor
    cell: Tensor

    def detach(self) -> LstmState:
        """The same numbers without their history."""
        return LstmState(self.hidden.detach(), self.cell.detach())

    def keep(self, alive: Tensor) -> LstmState:
        """Zero the state where ``alive`` (learners, batch, 1) is 0: an episode has ended there."""
        return LstmState(self.hidden * alive, self.cell * alive)


class _Activations(NamedTuple):
    """What one step computes besides the state."""

    switches: Tensor  # (L, N, 3 H): output, input, forget
    candidate: Tensor  # (L, N, H)
    squashed: Tensor  # (L, N, H): tanh(c')


def lstm_cell(
    embedding: Tensor, recurrent: Tensor, state: LstmState
) -> tuple[LstmState, _Activations]:
    """One step from the observation's part of the gates (L, N, 4 H) and weights (L, H, 4 H)."""
    gates = torch.baddbmm(embedding, state.hidden, recurrent)
    channels = state.cell.shape[-1]
    switches = gates[..., : 3 * channels].sigmoid()
    candidate = gates[..., 3 * channels :].tanh()
    output, admit, forget = switches.split(channels, dim=-1)
    cell = torch.addcmul(forget * state.cell, admit, candidate)
    squashed = cell.tanh()
    return LstmState(output * squashed, cell), _Activations(switches, candidate, squashed)


class LstmMemory:
    """An LSTM; equivariant with tied weights. Holds none itself."""

    outputs = regular(HIDDEN)

    def arrays(self, features: Layout) -> list[ArraySpec]:
        """Weights by name; fields of ``features`` describe an observation."""
        of_x, of_h = 1 / math.sqrt(features.channels), 1 / math.sqrt(HIDDEN)
        return [
            ArraySpec("lstm_x", features, regular(4 * HIDDEN), of_x),
            ArraySpec("lstm_h", regular(HIDDEN), regular(4 * HIDDEN), of_h, bias=False),
        ]

    def initial_state(self, learners: int, batch: int) -> LstmState:
        """Zeros, which every group element leaves alone."""
        zeros = torch.zeros(learners, batch, HIDDEN)
        return LstmState(zeros, zeros)

    def draw_noise(self, generators: list[np.random.Generator], batch: int) -> None:
        """Nothing is random."""

    def recur(
        self,
        weights: Mapping[str, Tensor],
        embedding: Tensor,
        state: LstmState,
        noise: None = None,
    ) -> LstmState:
        """The state after an embedding (learners, batch, 4 * HIDDEN)."""
        return lstm_cell(embedding, weights["lstm_h"], state)[0]

    def output(self, weights: Mapping[str, Tensor], state: LstmState) -> Tensor:
        """The hidden vector."""
        return state.hidden

    def record(self) -> RecordedLstm:
        """A recording of one rollout."""
        return RecordedLstm()


class RecordedLstm:
    """The steps of one rollout, in order."""

    def __init__(self) -> None:
        self.before: list[LstmState] = []
        self.after: list[LstmState] = []
        self.alive: list[Tensor | None] = []  # None: no episode ended at this step
        self._activations: list[_Activations] = []

    @torch.no_grad()
    def step(
        self,
        weights: Mapping[str, Tensor],
        embedding: Tensor,
        state: LstmState,
        noise: None = None,
    ) -> LstmState:
        """Take one step and remember it."""
        after, activations = lstm_cell(embedding, weights["lstm_h"], state)
        self.before.append(state)
        self.after.append(after)
        self._activations.append(activations)
        self.alive.append(None)
        return after

    def end_episodes(self, alive: Tensor) -> LstmState:
        """Forget where ``alive`` (L, N, 1) is 0; returns the state that the next step starts in."""
        self.alive[-1] = alive
        return self.after[-1].keep(alive)

    def outputs(self, weights: Mapping[str, Tensor], embeddings: Tensor) -> Tensor:
        """Recorded hidden vectors (T, L, N, H) as a function of embeddings (T, L, N, 4 H), weights.

        Both must hold the numbers of the recording; nothing is computed until the gradient is.
        """
        hidden: Tensor = _Replay.apply(embeddings, weights["lstm_h"], self)
        return hidden

    @torch.no_grad()
    def backward(self, given: Tensor, recurrent: Tensor) -> tuple[Tensor, Tensor]:
        """From d loss / d hidden (T, L, N, H): that of the embeddings and of the weights."""
        switches = torch.stack([a.switches for a in self._activations])
        candidate = torch.stack([a.candidate for a in self._activations])
        squashed = torch.stack([a.squashed for a in self._activations])
        cell_before = torch.stack([state.cell for state in self.before])
        hidden_before = torch.stack([state.hidden for state in self.before])
        steps, learners, batch, channels = given.shape
        output, admit, forget = switches.split(channels, dim=-1)
        of_switches = switches * (1 - switches)
        # Everything but dh and dc of a step is known, so the sweep itself does little.
        of_gates = torch.cat((squashed, candidate, cell_before, admit), dim=-1)
        of_gates[..., : 3 * channels] *= of_switches
        of_gates[..., 3 * channels :] *= 1 - candidate.square()
        through_cell = output * (1 - squashed.square())
        transposed = recurrent.transpose(1, 2)
        hidden_next = cell_next = torch.zeros(())
        sweep = zip(*(x.unbind() for x in (given, of_gates, through_cell, forget)), strict=True)
        for alive, (own, gates, through, kept) in zip(
            reversed(self.alive), reversed(list(sweep)), strict=True
        ):
            if alive is not None:
                hidden_next, cell_next = hidden_next * alive, cell_next * alive
            of_hidden = own + hidden_next
            of_cell = torch.addcmul(cell_next, of_hidden, through)
            gates *= torch.cat((of_hidden, of_cell, of_cell, of_cell), dim=-1)
            cell_next = of_cell * kept
            hidden_next = torch.bmm(gates, transposed)
        rows = (learners, steps * batch, -1)
        of_weights = torch.bmm(
            hidden_before.transpose(0, 1).reshape(rows).transpose(1, 2),
            of_gates.transpose(0, 1).reshape(rows),
        )
        return of_gates, of_weights


class _Replay(torch.autograd.Function):
    """Recorded hidden vectors with the gradient of the steps that made them."""

    @staticmethod
    def forward(ctx: Any, embeddings: Tensor, recurrent: Tensor, recording: RecordedLstm) -> Tensor:
        ctx.recording = recording
        ctx.save_for_backward(recurrent)
        return torch.stack([state.hidden for state in recording.after])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (recurrent,) = ctx.saved_tensors
        return (*ctx.recording.backward(gradients[0], recurrent), None)
