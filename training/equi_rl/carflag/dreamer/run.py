# SPDX-License-Identifier: MIT
"""What a Dreamer run is, and the sheeprl command that it leads to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from equi_rl.carflag.run import CarFlagRun, Domain, RunConfigError

DreamerAgent = Literal["dreamer-v2", "dreamer-v3"]
DREAMER_AGENTS: tuple[DreamerAgent, ...] = get_args(DreamerAgent)
WORLDS_PER_RUN = 4


@dataclass(frozen=True)
class DreamerRun:
    """DreamerV2 or DreamerV3 on a CarFlag world. Needs `make baselines` once."""

    domain: Domain
    agent: DreamerAgent = "dreamer-v3"
    size: int = 0
    """Flags apart (1-D, default 50) or cells per edge (2-D, default 9); 0 takes the default."""
    offset: int = 0
    """Displacement of the information region from the centre [cells]."""
    seed: int = 0
    """Of networks, worlds and batches."""
    steps: int = 30_000
    """Environment steps."""
    report_every: int = 2_000
    """Environment steps of training episodes whose successes make one point of the curve."""
    replay_ratio: float = 1 / 32
    """Updates per environment step. The authors' 1 is more than a CPU can carry."""
    width: int = 128
    """Units of every dense layer and of the recurrent state; about a million parameters."""
    categoricals: int = 16
    """Categorical variables of the latent state, and classes of each."""
    batch_size: int = 8
    """Sequences in a batch."""
    sequence_steps: int = 50
    """Their length; an episode has at most 50 steps."""

    def __post_init__(self) -> None:
        if self.agent not in DREAMER_AGENTS:
            raise RunConfigError(
                f"agent = {self.agent!r} is unknown; choose {' or '.join(DREAMER_AGENTS)}"
            )
        for name in ("steps", "report_every", "width", "categoricals", "batch_size"):
            if getattr(self, name) <= 0:
                raise RunConfigError(f"{name} = {getattr(self, name)} must be positive")
        if self.seed < 0:
            raise RunConfigError(f"seed = {self.seed} must not be negative")
        if not 0.0 < self.replay_ratio <= 1.0:
            raise RunConfigError(
                f"replay_ratio = {self.replay_ratio} must lie above 0 and be at most 1"
            )
        world = CarFlagRun(
            self.domain, size=self.size, offset=self.offset
        )  # refuses what cannot be
        object.__setattr__(self, "size", world.size)

    @property
    def name(self) -> str:
        """Folder-like name, as that of `CarFlagRun`."""
        world = f"{self.domain}-size{self.size}-offset{self.offset}"
        return f"{world}/{self.agent}/seed-{self.seed}"

    def arguments(self) -> tuple[str, ...]:
        """Arguments of ``equi-train`` that describe this run in full."""
        words = ["dreamer"]
        for name, value in asdict(self).items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return tuple(words)

    def to_json(self) -> dict[str, Any]:
        """Plain values; ``DreamerRun(**values)`` inverts."""
        return asdict(self)

    def overrides(self, log_folder: Path, output: Path) -> list[str]:
        """Settings of sheeprl (Hydra overrides)."""
        version = self.agent.replace("-", "_")
        model = "algo.world_model"
        return [
            f"exp={version}",
            *(["algo=dreamer_v3_XS"] if self.agent == "dreamer-v3" else []),
            "env=gym",
            f"env.id={self.domain}",
            f"env.num_envs={WORLDS_PER_RUN}",
            "env.sync_env=True",
            "env.capture_video=False",
            "env.wrapper._target_=equi_rl.carflag.dreamer.world.make_world",
            "~env.wrapper.id",
            "~env.wrapper.render_mode",
            f"+env.wrapper.domain={self.domain}",
            f"+env.wrapper.size={self.size}",
            f"+env.wrapper.offset={self.offset}",
            f"+env.wrapper.log_folder='{log_folder}'",
            "+env.wrapper.rank=0",  # sheeprl puts the number of the world here
            "algo.cnn_keys.encoder=[]",
            "algo.cnn_keys.decoder=[]",
            "algo.mlp_keys.encoder=[cells]",
            "algo.mlp_keys.decoder=[cells]",
            f"algo.total_steps={self.steps}",
            f"algo.replay_ratio={self.replay_ratio}",
            "algo.learning_starts=1024",
            f"algo.per_rank_batch_size={self.batch_size}",
            f"algo.per_rank_sequence_length={self.sequence_steps}",
            "algo.run_test=False",
            f"algo.dense_units={self.width}",
            "algo.mlp_layers=2",
            f"{model}.discrete_size={self.categoricals}",
            f"{model}.stochastic_size={self.categoricals}",
            f"{model}.recurrent_model.recurrent_state_size={self.width}",
            f"{model}.transition_model.hidden_size={self.width}",
            f"{model}.representation_model.hidden_size={self.width}",
            f"buffer.size={self.steps}",
            "buffer.memmap=False",
            "buffer.checkpoint=False",
            f"checkpoint.every={self.steps}",
            "metric.log_level=0",
            "fabric.accelerator=cpu",
            f"seed={self.seed}",
            f"log_root='{output}'",
            f"hydra.run.dir='{output}/hydra'",
        ]
