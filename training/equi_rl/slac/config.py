# SPDX-License-Identifier: MIT
"""What one SLAC run on a robot task is; the fields are the flags of `equi-train slac`.

Data are those of the preset `paper`: 80 demonstrations of the expert that tries a random object, 20
episodes of random actions, rotated episodes. What is learnt from them is SLAC's own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equi_core.contract import PolicyContract
from equi_rl.data.collate import Augmentation
from equi_rl.envs import TASKS
from equi_rl.envs.arm_options import arm_options
from equi_rl.experts import FirstChoice

AGENT = "slac"
DATA_OF_PRESET = "paper"
"""The preset whose data and figures the run shares."""


class SlacConfigError(ValueError):
    """A run that cannot be: names the field, its value and what is allowed."""


@dataclass(frozen=True)
class LatentModelConfig:
    """Sizes of the latent model; the published ones are about twice as wide."""

    image_size: int = 64
    """Side of the images that the model sees [px]; observations are resized to it."""
    channels: tuple[int, ...] = (16, 32, 64, 128)
    """Of the encoder's convolutions, each of which halves the image; the decoder mirrors them."""
    feature_size: int = 128
    """Numbers that the encoder makes of an image and the holding flag."""
    z1_size: int = 32
    """First level of the latent state: inferred from the image."""
    z2_size: int = 128
    """Second level: follows from the first, the state before and the action."""
    hidden_size: int = 128
    """Width of the hidden layers of priors, posterior, reward and termination."""
    image_std: float = 0.3
    """Standard deviation of a pixel given the latent state; 1 is 10 cm of depth."""
    reward_std: float = 0.1
    """Standard deviation of a reward given the latent states around it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "channels", tuple(self.channels))
        _require(len(self.channels) > 0, "model.channels", self.channels, "one width or more")
        for width in self.channels:
            _require(width >= 1, "model.channels", self.channels, "widths of at least 1")
        block = 2 ** len(self.channels)
        _require(
            self.image_size >= block and self.image_size % block == 0,
            "model.image_size",
            self.image_size,
            f"a multiple of {block}: each of the {len(self.channels)} convolutions halves it",
        )
        for name in ("feature_size", "z1_size", "z2_size", "hidden_size"):
            _require(getattr(self, name) >= 1, f"model.{name}", getattr(self, name), "at least 1")
        for name in ("image_std", "reward_std"):
            _require(getattr(self, name) > 0.0, f"model.{name}", getattr(self, name), "positive")

    @property
    def latent_size(self) -> int:
        """Numbers of a latent state, both levels."""
        return self.z1_size + self.z2_size


@dataclass(frozen=True)
class SlacRun:
    """One run, validated as a whole."""

    task: str
    """block_picking, block_pulling, block_pushing, drawer_opening, or a task of your own."""
    seed: int = 0
    """Seed of networks, scenes and batches, 0 to 399."""
    environment_steps: int = 41_000
    """The run ends when its replay buffer has received this many environment steps, demonstrations
    and random episodes included."""
    demonstrations: int = 80
    """Episodes of the expert in the replay buffer before learning."""
    first_choice: FirstChoice = FirstChoice.RANDOM
    """Which object the demonstrating expert tries first."""
    random_episodes: int = 20
    """Episodes of random actions in the replay buffer before learning."""
    rotate: bool = True
    """Whether sampled episodes are rotated by a random angle (augmentation)."""
    latent_updates: int = 2000
    """Updates of the latent model alone, before the actor acts for the first time."""
    updates_per_step: float = 1.0
    """Updates of latent model, critic and actor per environment step."""
    actor_critic_updates: int = 1
    """Updates of actor and critics for each of the latent model after its pretraining, all on the
    states of one batch: they cost a tenth of it."""
    episodes_per_round: int = 1
    """Episodes that the current policy collects while the updates of the ones before are made."""
    batch_episodes: int = 32
    """Whole episodes in a batch."""
    history_steps: int = 50
    """Features and actions that the actor sees, zeros in front: 50 is the whole episode."""
    actor_hidden_size: int = 256
    """Width of the two hidden layers of actor and critics."""
    latent_learning_rate: float = 3e-4
    """Of the latent model (Adam)."""
    learning_rate: float = 3e-4
    """Of actor and critics (Adam)."""
    temperature_learning_rate: float = 1e-3
    """Of the temperature alpha (Adam)."""
    initial_temperature: float = 0.1
    """Alpha at the start."""
    target_entropy: float = -5.0
    """Entropy of the policy that alpha is steered to."""
    discount: float = 0.9
    """Gamma."""
    tau: float = 0.005
    """Share of the critics that enters their targets per update (Polyak)."""
    gradient_clip: float = 10.0
    """Longest gradient of actor and critics; 0: any."""
    evaluations: int = 4
    """Evaluations at equal distances of environment steps, the last one at the end; those that
    fall into demonstrations and random episodes are one, before the first round."""
    evaluation_episodes: int = 20
    """Greedy episodes of an evaluation, on scenes of their own."""
    replay_capacity: int = 100_000
    """Capacity of the replay buffer in transitions."""
    model: LatentModelConfig = dataclasses.field(default_factory=LatentModelConfig)
    """Latent model."""

    def __post_init__(self) -> None:
        _require(
            self.task in TASKS,
            "task",
            self.task,
            f"one of {', '.join(TASKS)}; SLAC exists on the robot tasks only. For a CarFlag domain"
            " use `equi-train carflag` or `equi-train dreamer`",
        )
        _require(0 <= self.seed < 400, "seed", self.seed, "between 0 and 399")
        for name in ("demonstrations", "random_episodes", "latent_updates", "gradient_clip"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        for name in (
            "environment_steps",
            "episodes_per_round",
            "actor_critic_updates",
            "batch_episodes",
            "history_steps",
            "actor_hidden_size",
            "evaluations",
            "evaluation_episodes",
            "replay_capacity",
        ):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        for name in (
            "updates_per_step",
            "latent_learning_rate",
            "learning_rate",
            "temperature_learning_rate",
            "initial_temperature",
        ):
            _require(getattr(self, name) > 0.0, name, getattr(self, name), "positive")
        _require(0.0 <= self.discount <= 1.0, "discount", self.discount, "between 0 and 1")
        _require(0.0 < self.tau <= 1.0, "tau", self.tau, "above 0 and at most 1")
        _require(
            self.demonstrations + self.random_episodes > 0,
            "demonstrations",
            self.demonstrations,
            "positive without random_episodes, or there is nothing to learn from at the start",
        )

    @property
    def augmentation(self) -> Augmentation:
        """How sampled episodes are transformed."""
        return Augmentation(self.rotate)

    @property
    def contract(self) -> PolicyContract:
        """What the agent sees and does, as every other agent."""
        return PolicyContract(task=self.task)

    @property
    def env_options(self) -> tuple[tuple[str, Any], ...]:
        """Keyword arguments of the environment."""
        return (("contract", self.contract), *arm_options(stiff=False))

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able form, for the run folder."""
        plain = dataclasses.asdict(self)
        plain["first_choice"] = self.first_choice.value
        plain["model"]["channels"] = list(self.model.channels)
        return {"agent": AGENT, "preset": DATA_OF_PRESET, **plain}

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> SlacRun:
        """The inverse of `to_mapping`; raises SlacConfigError for a run of another agent."""
        values = dict(mapping)
        agent = values.pop("agent", None)
        if agent != AGENT:
            raise SlacConfigError(f"agent is {agent!r}; a run of SLAC has agent '{AGENT}'")
        del values["preset"]
        values["first_choice"] = FirstChoice(values["first_choice"])
        values["model"] = LatentModelConfig(**values["model"])
        return cls(**values)


def _require(condition: bool, name: str, value: object, allowed: str) -> None:
    if not condition:
        raise SlacConfigError(f"{name} is {value!r}; it must be {allowed}")
