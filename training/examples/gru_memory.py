# SPDX-License-Identifier: MIT
"""A memory of one's own: a gated recurrent unit in the LSTM's place.

    import gru_memory  # registers it
    config = equi_rl.RecurrentSacConfig(memory="gru")

The network makes the linear layer, equivariant or plain. The rest acts on each channel alone, so
the GRU is as equivariant as the layer: the group only permutes the channels of regular fields.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from equi_rl.nets.memories import Linear, LstmState, Memory, register_memory


class Gru(Memory):
    """Reset gate r, update gate z and candidate n, three blocks of the layer's output."""

    name: ClassVar[str] = "gru"
    blocks: ClassVar[int] = 3

    def step(self, linear: Linear, inputs: Tensor, state: LstmState) -> LstmState:
        """One step: h becomes z h + (1 - z) tanh(W [x, r h])."""
        reset, update, _ = linear(inputs, state.hidden).sigmoid().chunk(3, dim=1)
        candidate = linear(inputs, reset * state.hidden).chunk(3, dim=1)[2].tanh()
        hidden = update * state.hidden + (1.0 - update) * candidate
        return LstmState(hidden, state.cell)


register_memory(Gru())
