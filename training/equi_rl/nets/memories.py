# SPDX-License-Identifier: MIT
"""What a network remembers with: the LSTM, nothing at all, or a memory of your own.

A memory is one linear layer from [input, hidden state] to ``blocks`` times the width of the state,
and what becomes of its output. The layer is made by the network, equivariant or plain; whatever
follows acts on each channel alone, and so commutes with a group that permutes the channels of
regular fields. Write ``step``; the packed run over whole episodes then works by itself:

    class MyMemory(Memory):
        name = "mine"
        blocks = 2

        def step(self, linear, inputs, state): ...

    register_memory(MyMemory())
    config = NetworkConfig(memory="mine", ...)

The tutorial "add your own memory" does it with a GRU.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

Linear = Callable[[Tensor, Tensor], Tensor]
"""(inputs (B, C, ...), hidden (B, H, ...)) to (B, blocks * H, ...)."""


class LstmState(NamedTuple):
    """Hidden and cell state, each (B, recurrent_channels); only an LSTM uses the cell."""

    hidden: Tensor
    cell: Tensor


class Memory(abc.ABC):
    """How the state of a network changes with an input; holds no weights and no state itself."""

    name: ClassVar[str]
    """As `NetworkConfig.memory` names it."""
    blocks: ClassVar[int]
    """Rows of the linear layer, in units of the state's width."""

    @abc.abstractmethod
    def step(self, linear: Linear, inputs: Tensor, state: LstmState) -> LstmState:
        """The state after one more input; ``hidden`` is also the output.

        Use ``linear`` and functions of single channels only, else the symmetry is lost.
        """

    def run(
        self, weight: Tensor, bias: Tensor, inputs: Tensor, counts: Tensor, state: LstmState
    ) -> tuple[Tensor, LstmState]:
        """Run over packed episodes.

        Args:
            weight: (blocks * H, C + H) matrix.
            bias: (blocks * H,).
            inputs: (F, C) packed inputs.
            counts: (T,) int64 number of episodes alive at each step, not increasing.
            state: (B, H) states of the episodes in packed order.

        Returns:
            (F, H) packed outputs, and the state of every episode after its last input.
        """
        from_input, from_hidden = weight.split([inputs.shape[1], state.hidden.shape[1]], dim=1)

        def linear(given: Tensor, hidden: Tensor) -> Tensor:
            return torch.addmm(bias, given, from_input.t()) + hidden @ from_hidden.t()

        outputs: list[Tensor] = []
        ended: list[LstmState] = []
        for given in inputs.split(counts.tolist()):
            alive = len(given)
            if alive < len(state.hidden):  # the shortest episodes come last and end first
                ended.append(LstmState(*(part[alive:] for part in state)))
                state = LstmState(*(part[:alive] for part in state))
            state = self.step(linear, given, state)
            outputs.append(state.hidden)
        final = [state, *reversed(ended)]
        hidden, cell = (torch.cat(parts) for parts in zip(*final, strict=True))
        return torch.cat(outputs), LstmState(hidden, cell)


class Lstm(Memory):
    """Long short-term memory; the rows of the layer are the gates i, f, g, o."""

    name = "lstm"
    blocks = 4

    def step(self, linear: Linear, inputs: Tensor, state: LstmState) -> LstmState:
        """One step, written out."""
        i, f, g, o = linear(inputs, state.hidden).chunk(4, dim=1)
        cell = f.sigmoid() * state.cell + i.sigmoid() * g.tanh()
        return LstmState(o.sigmoid() * cell.tanh(), cell)

    def run(
        self, weight: Tensor, bias: Tensor, inputs: Tensor, counts: Tensor, state: LstmState
    ) -> tuple[Tensor, LstmState]:
        """As the base class, by torch's own LSTM: its input product is batched over all steps."""
        from_input, from_hidden = weight.split([inputs.shape[1], state.hidden.shape[1]], dim=1)
        flat = [from_input.contiguous(), from_hidden.contiguous(), bias, torch.zeros_like(bias)]
        start = (state.hidden[None], state.cell[None])
        output, hidden, cell = torch.lstm(inputs, counts, start, flat, True, 1, 0.0, False, False)
        return output, LstmState(hidden[0], cell[0])


class NoMemory(Memory):
    """A feed-forward layer in the LSTM's place: the control of every claim about memory."""

    name = "none"
    blocks = 1

    def step(self, linear: Linear, inputs: Tensor, state: LstmState) -> LstmState:
        """The output of a rectified layer; the state before does not matter."""
        return LstmState(linear(inputs, torch.zeros_like(state.hidden)).relu(), state.cell)

    def run(
        self, weight: Tensor, bias: Tensor, inputs: Tensor, counts: Tensor, state: LstmState
    ) -> tuple[Tensor, LstmState]:
        """All steps at once; the state stays what it was."""
        from_input = weight[:, : inputs.shape[1]]
        return torch.addmm(bias, inputs, from_input.t()).relu(), state


_MEMORIES: dict[str, Memory] = {}


def register_memory(memory: Memory) -> None:
    """Make a memory known by its name; a name that another kind has taken is refused."""
    known = _MEMORIES.get(memory.name)
    if known is not None and type(known) is not type(memory):
        raise ValueError(
            f"memory '{memory.name}' is already {type(known).__name__}; choose another name"
        )
    _MEMORIES[memory.name] = memory


def memory_named(name: str) -> Memory:
    """The memory of that name; raises ValueError naming the known ones."""
    if name not in _MEMORIES:
        raise ValueError(
            f"memory = {name!r} is not known; known: {', '.join(_MEMORIES)}; call"
            " register_memory for one of your own"
        )
    return _MEMORIES[name]


register_memory(Lstm())
register_memory(NoMemory())
