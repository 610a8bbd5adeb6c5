# SPDX-License-Identifier: MIT
"""What a CarFlag run is: domain, agent, seeds, length, hyper-parameters. One frozen dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from equi_rl.carflag.a2c import A2CConfig
from equi_rl.carflag.memories.memory import Memory
from equi_rl.carflag.memories.particle_filter import ParticleMemory
from equi_rl.carflag.memories.recorded_lstm import LstmMemory
from equi_rl.carflag.worlds import CarFlag1D, CarFlag2D, World

Domain = Literal["carflag-1d", "carflag-2d"]
Agent = Literal["equi-ra2c", "ra2c", "dpfrl"]
DOMAINS: tuple[str, ...] = get_args(Domain)
AGENTS: tuple[Agent, ...] = get_args(Agent)

# In the grid the goal is the only reward, rare at first. Raw advantages drown in the entropy
# bonus, so they are normalised; the bonus is then larger, or seeds settle on sweeping the grid; the
# critic counts more, because predicting the return is what first needs a memory of the hint; values
# in the returns and a longer memory at the start let the seeds discover it sooner.
TUNED_A2C: Mapping[Domain, A2CConfig] = {
    "carflag-1d": A2CConfig(),
    "carflag-2d": A2CConfig(
        normalise_advantages=True,
        entropy_weight=0.05,
        value_weight=5.0,
        gae_lambda=0.9,
        forget_bias=3.0,
        rms_correction=True,  # without it one of four seeds never left the uniform policy
    ),
}
_OF_THE_DOMAIN = A2CConfig()
"""This very object, as a default, stands for the domain's own hyper-parameters."""
_DEFAULT_SIZE = {"carflag-1d": CarFlag1D.size, "carflag-2d": CarFlag2D.size}
_MAX_SEEDS = 64


class RunConfigError(ValueError):
    """A run that cannot be: unknown domain or agent, impossible world, nonsensical length."""


@dataclass(frozen=True)
class CarFlagRun:
    """Recurrent A2C on a CarFlag world; the seeds train side by side in one process."""

    domain: Domain
    agent: Agent = "equi-ra2c"
    size: int = 0
    """Flags apart (1-D, default 50) or cells per edge (2-D, default 9); 0 takes the default."""
    offset: int = 0
    """Displacement of the information region from the centre [cells]; not 0 breaks the symmetry."""
    seeds: tuple[int, ...] = (0, 1, 2, 3)
    """One independent learner per seed."""
    steps: int = 1_000_000
    """Environment steps of each learner."""
    evaluate_every: int = 20_000
    """Environment steps between evaluations."""
    evaluation_episodes: int = 100
    """Greedy episodes of each learner and evaluation, in worlds of their own."""
    a2c: A2CConfig = _OF_THE_DOMAIN
    """Hyper-parameters; default: those tuned for the domain (--help after --domain shows them)."""

    def __post_init__(self) -> None:
        if self.domain not in DOMAINS:
            raise RunConfigError(
                f"domain = {self.domain!r} is unknown; choose {' or '.join(DOMAINS)}"
            )
        if self.agent not in AGENTS:
            raise RunConfigError(f"agent = {self.agent!r} is unknown; choose {' or '.join(AGENTS)}")
        if self.size == 0:
            object.__setattr__(self, "size", _DEFAULT_SIZE[self.domain])
        if self.a2c is _OF_THE_DOMAIN:
            object.__setattr__(self, "a2c", TUNED_A2C[self.domain])
        self.world()  # raises if the world cannot exist
        for name in ("steps", "evaluate_every", "evaluation_episodes"):
            if getattr(self, name) <= 0:
                raise RunConfigError(f"{name} = {getattr(self, name)} must be positive")
        if not 0 < len(set(self.seeds)) == len(self.seeds) <= _MAX_SEEDS or min(self.seeds) < 0:
            raise RunConfigError(
                f"seeds = {self.seeds}: give 1 to {_MAX_SEEDS} different numbers, none negative"
            )

    @property
    def is_equivariant(self) -> bool:
        """Whether the agent's network has the symmetry built in."""
        return self.agent == "equi-ra2c"

    @property
    def name(self) -> str:
        """Folder-like name: domain with size and offset, agent, seeds."""
        seeds = "-".join(map(str, self.seeds))
        return f"{self.domain}-size{self.size}-offset{self.offset}/{self.agent}/seeds-{seeds}"

    def memory(self) -> Memory:
        """What the agent remembers with."""
        return ParticleMemory() if self.agent == "dpfrl" else LstmMemory()

    def world(self) -> World:
        """The world's definition."""
        return (CarFlag1D if self.domain == "carflag-1d" else CarFlag2D)(self.size, self.offset)

    def arguments(self) -> tuple[str, ...]:
        """Arguments of ``equi-train`` that describe this run in full."""
        own = [
            (f.name, getattr(self, f.name)) for f in fields(self) if f.name not in ("seeds", "a2c")
        ]
        inner = [(f"a2c.{f.name}", getattr(self.a2c, f.name)) for f in fields(self.a2c)]
        words = ["carflag"]
        for name, value in [*own, *inner]:
            words += [f"--{name.replace('_', '-')}", str(value)]
        return (*words, "--seeds", *map(str, self.seeds))

    def to_json(self) -> dict[str, Any]:
        """Plain values; ``from_json`` inverts."""
        return {**asdict(self), "seeds": list(self.seeds)}

    @staticmethod
    def from_json(values: dict[str, Any]) -> CarFlagRun:
        """A run from the values of ``to_json``."""
        return CarFlagRun(
            **{**values, "seeds": tuple(values["seeds"]), "a2c": A2CConfig(**values["a2c"])}
        )
