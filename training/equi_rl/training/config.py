# SPDX-License-Identifier: MIT
"""What one training run on a robot task is: task, agent, seed, and every number behind them.

The fields are the flags of `equi-train robot`, and the string below a field is its help.
`presets` gives them values that belong together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from equi_core.contract import ImageSpec, PolicyContract
from equi_rl.agents.asymmetric_settings import AsymmetricSettings
from equi_rl.agents.imitation import ImitationSettings
from equi_rl.agents.sac_settings import Encoder, SacSettings
from equi_rl.data.collate import Augmentation, PixelAugmentation
from equi_rl.envs import TASKS
from equi_rl.envs.arm_options import arm_options
from equi_rl.envs.privileged_state import StateFrame
from equi_rl.experts import FirstChoice
from equi_rl.nets.config import Combination

CROP_SIZE_PX = 90
"""Side of the images from which agents that crop take their windows."""


class Preset(str, Enum):
    """How an agent is trained."""

    PAPER = "paper"
    REWARD = "reward"
    BRIEF = "brief"
    DEPLOY = "deploy"
    SHIP = "ship"


LEARN_FROM_VALUES = (Preset.REWARD, Preset.BRIEF, Preset.DEPLOY)
"""Presets in which a critic that sees the simulator's state improves the policy."""


@dataclass(frozen=True)
class AgentKind:
    """Which parts of an agent are equivariant, and how its images are augmented."""

    combination: Combination
    pixels: PixelAugmentation = PixelAugmentation.NONE
    copies: int = 1

    @property
    def can_share_encoder(self) -> bool:
        """Whether actor and critic are of one kind; an equivariant and a plain one are not."""
        return self.combination not in (Combination.ACTOR_ONLY, Combination.CRITIC_ONLY)

    @property
    def critic_state_frame(self) -> StateFrame:
        """What a critic of the simulator's state is given: its symmetry is that of its input."""
        plain = self.combination in (Combination.ACTOR_ONLY, Combination.PLAIN)
        return StateFrame.BASE if plain else StateFrame.SCENE


AGENTS: Mapping[str, AgentKind] = {
    "equi-rsac": AgentKind(Combination.EQUIVARIANT),
    "rsac": AgentKind(Combination.PLAIN),
    "equi-actor-rsac": AgentKind(Combination.ACTOR_ONLY),
    "equi-critic-rsac": AgentKind(Combination.CRITIC_ONLY),
    "equi-cnn-rsac": AgentKind(Combination.PLAIN_LSTM),
    "rad-crop-rsac": AgentKind(Combination.PLAIN, PixelAugmentation.CROP),
    "drq-shift-rsac": AgentKind(Combination.PLAIN, PixelAugmentation.SHIFT, copies=2),
}


class RobotConfigError(ValueError):
    """A run that cannot be: names the field, its value and what is allowed."""


@dataclass(frozen=True)
class RobotRun:
    """One run, validated as a whole; `presets.robot_run` fills it from a preset."""

    task: str
    """block_picking, block_pulling, block_pushing, drawer_opening, or a task of your own."""
    preset: Preset = Preset.REWARD
    """Where the other defaults come from. paper: the published recipe. reward: imitation, then
    improvement by reward with a critic that sees the simulator's state. brief: the same in fewer
    steps, to compare agents. deploy: the same with more demonstrations, on varied scenes and a
    stiff arm. ship: DAgger."""
    agent: str = "equi-rsac"
    """equi-rsac, rsac, equi-actor-rsac, equi-critic-rsac, equi-cnn-rsac, rad-crop-rsac or
    drq-shift-rsac."""
    seed: int = 0
    """Seed of networks, scenes and batches, 0 to 399."""
    group: str = "C4"
    """Symmetry group of the equivariant parts: C4, C8, D4 or D8."""
    initial_state: str = "zero"
    """State of the LSTM at the start of an episode: zero, or random (ablation)."""
    demonstrations: int = 80
    """Episodes of the expert in the replay buffer before learning."""
    first_choice: FirstChoice = FirstChoice.RANDOM
    """Which object the demonstrating expert tries first."""
    random_episodes: int = 0
    """Episodes of random actions in the replay buffer before learning."""
    rotate: bool = True
    """Whether sampled episodes are rotated by a random angle (augmentation)."""
    rotation_fits_square: bool = False
    """Draw another angle, finally a quarter turn, where a rotated step would leave the square of
    actions that a policy can ask for; False lets the critic and the memory see such steps. Most
    demonstrations then fit at quarter turns only, which teach an equivariant agent nothing."""
    randomise: bool = False
    """Domain randomisation: sizes, masses, friction, calibration and depth vary in every second
    episode."""
    stiff_arm: bool = False
    """An arm as stiff as a real one, whose step ends at a noticed contact, by the law of the
    robot's driver and at its speeds; False: one that gives way by some millimetres."""
    continues: str = ""
    """Folder of an earlier run of the same task and agent, whose episodes and newest weights this
    one starts from instead of demonstrations; its steps, updates and seconds are added."""
    rounds: int = 100
    """Rounds of collecting and learning; 0: environment_steps alone ends the run."""
    environment_steps: int = 0
    """The run ends when its replay buffer has received this many environment steps, demonstrations
    and random episodes included; 0: rounds alone end the run."""
    episodes_per_round: int = 5
    """Episodes that the current policy collects in a round."""
    exploration_std: float = 0.0
    """Noise on the mean action of collected episodes, in policy units: most draw its standard
    deviation uniformly below this, half of them correlated in time, some have none. 0: actions are
    drawn from the policy."""
    updates_per_round: int = 25
    """Updates while one round of episodes is collected; 0: updates_per_step says how many."""
    updates_per_step: float = 1.0
    """With updates_per_round 0: updates per environment step that the round before has collected.
    They are made while the next round is played with the earlier weights."""
    pre_updates_per_step: float = 0.0
    """Updates per step of the demonstrations, once these are stored, and again per step of the
    random episodes, before the first round."""
    batch_episodes: int = 32
    """Whole episodes in a batch."""
    demonstrations_per_batch: int = 0
    """How many of a batch's episodes are sampled from the demonstrations alone."""
    recent_per_batch: int = 0
    """How many of a batch's episodes are sampled from the newest ones alone."""
    recent_episodes: int = 400
    """How many of the collected episodes are the newest ones."""
    expert_takeover_within: int = 0
    """Preset ship: the expert takes over at a step drawn below this, so that an episode in which
    the policy is stuck also shows how to continue; 0: it only labels."""
    expert_takeover_grows_to: int = 0
    """`expert_takeover_within` of the last round, reached linearly: a better policy acts alone for
    longer, and is labelled where that takes it; 0: the same in every round."""
    evaluate_every: int = 10
    """Rounds between checkpoints; each comes with an evaluation unless evaluation_share says when
    these are made."""
    evaluation_episodes: int = 100
    """Greedy episodes of an evaluation, on scenes of their own."""
    evaluation_share: float | None = None
    """With environment_steps: evaluations take at most this share of them in addition, even if
    every episode lasts to its end. As many as fit are made: one after pretraining, the others at
    equal distances, the last at the end. None: one every evaluate_every rounds."""
    failing_evaluations: int = 10
    """Stop the run after this many evaluations in a row without a success; 0: never."""
    replay_capacity: int = 100_000
    """Capacity of the replay buffer in transitions."""
    imitation: ImitationSettings = dataclasses.field(default_factory=ImitationSettings)
    """Imitation (behaviour cloning, DAgger)."""
    sac: SacSettings = dataclasses.field(default_factory=SacSettings)
    """Recurrent soft actor-critic (preset paper)."""
    asymmetric: AsymmetricSettings = dataclasses.field(default_factory=AsymmetricSettings)
    """Asymmetric actor-critic (presets reward and deploy): the critic sees the simulator's state.
    """

    def __post_init__(self) -> None:
        _require(self.task in TASKS, "task", self.task, f"one of {', '.join(TASKS)}")
        _require(
            self.agent in AGENTS,
            "agent",
            self.agent,
            f"one of {', '.join(AGENTS)}; SLAC is trained by `equi-train slac`",
        )
        _require(0 <= self.seed < 400, "seed", self.seed, "between 0 and 399")
        for name in (
            "demonstrations",
            "random_episodes",
            "rounds",
            "environment_steps",
            "updates_per_round",
            "pre_updates_per_step",
            "recent_per_batch",
            "exploration_std",
            "expert_takeover_within",
            "expert_takeover_grows_to",
            "failing_evaluations",
        ):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        for name in (
            "episodes_per_round",
            "batch_episodes",
            "evaluate_every",
            "evaluation_episodes",
            "replay_capacity",
            "recent_episodes",
        ):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        for name in ("updates_per_step", "evaluation_share"):
            value = getattr(self, name)
            _require(value is None or value > 0.0, name, value, "positive")
        self._require_an_end()
        _require(
            0 <= self.demonstrations_per_batch <= self.batch_episodes,
            "demonstrations_per_batch",
            self.demonstrations_per_batch,
            f"between 0 and batch_episodes = {self.batch_episodes}",
        )
        left = self.batch_episodes - self.demonstrations_per_batch
        _require(
            self.recent_per_batch <= left,
            "recent_per_batch",
            self.recent_per_batch,
            f"at most {left}, what demonstrations_per_batch leaves of batch_episodes",
        )
        _require(
            self.kind.can_share_encoder or self.sac.encoder is Encoder.SEPARATE,
            "sac.encoder",
            self.sac.encoder.value,
            f"separate for {self.agent}: an equivariant and a plain network cannot share one",
        )
        self._require_fit_for_preset()

    def _require_an_end(self) -> None:
        budget, share = self.environment_steps, self.evaluation_share
        _require(
            self.rounds > 0 or (budget > 0 and self.preset is not Preset.SHIP),
            "rounds",
            self.rounds,
            "positive, or 0 with environment_steps and a preset other than ship, whose learning"
            " rate falls over the rounds",
        )
        _require(
            share is None or budget > 0,
            "evaluation_share",
            share,
            "None without environment_steps, of which it is a share",
        )
        _require(
            share is None or self.planned_evaluations > 0,
            "evaluation_episodes",
            self.evaluation_episodes,
            "so few that an evaluation after pretraining and one at the end, up to"
            f" {self.longest_evaluation_steps} steps each, fit into evaluation_share = {share} of"
            f" environment_steps = {budget}",
        )
        _require(
            not self.pre_updates_per_step or not self.imitation.updates,
            "pre_updates_per_step",
            self.pre_updates_per_step,
            "0 with imitation.updates, which come first",
        )

    def _require_fit_for_preset(self) -> None:
        ships, within = self.preset is Preset.SHIP, self.expert_takeover_within
        _require(
            not ships or self.first_choice is FirstChoice.NEAREST,
            "first_choice",
            self.first_choice.value,
            "nearest for the preset ship: a random choice cannot be learnt from observations",
        )
        _require(
            ships or within == 0,
            "expert_takeover_within",
            within,
            "0 except for the preset ship: the others see 80 demonstrations of the expert, no more",
        )
        _require(
            self.expert_takeover_grows_to == 0 or 0 < within <= self.expert_takeover_grows_to,
            "expert_takeover_grows_to",
            self.expert_takeover_grows_to,
            f"0, or at least expert_takeover_within = {within}, which must be positive",
        )
        _require(
            not self.continues or (ships and self.imitation.updates == 0),
            "continues",
            self.continues,
            "empty, or used with the preset ship and imitation.updates 0: only weights are taken"
            " over, no critic and no optimiser",
        )
        _require(
            self.demonstrations + self.random_episodes > 0,
            "demonstrations",
            self.demonstrations,
            "positive, or there is nothing to learn from at the start",
        )

    @property
    def kind(self) -> AgentKind:
        """What the agent's name stands for."""
        return AGENTS[self.agent]

    @property
    def learns_from_values(self) -> bool:
        """Whether a critic that sees the simulator's state improves the policy."""
        return self.preset in LEARN_FROM_VALUES

    @property
    def critic_state_frame(self) -> StateFrame:
        """Along which axes the simulator's state is recorded."""
        if self.learns_from_values:
            return self.kind.critic_state_frame
        return StateFrame.SCENE  # nothing reads it, and the demonstrations are the same for all

    @property
    def augmentation(self) -> Augmentation:
        """How sampled episodes are transformed."""
        return Augmentation(
            self.rotate, self.rotation_fits_square, self.kind.pixels, copies=self.kind.copies
        )

    @property
    def contract(self) -> PolicyContract:
        """What the agent sees and does; agents that crop are shown larger images."""
        cropped = self.kind.pixels is PixelAugmentation.CROP
        image = ImageSpec(size_px=CROP_SIZE_PX) if cropped else ImageSpec()
        return PolicyContract(task=self.task, image=image)

    @property
    def env_options(self) -> tuple[tuple[str, Any], ...]:
        """Keyword arguments of the environment that the agent is trained and selected in."""
        return (("contract", self.contract), *arm_options(stiff=self.stiff_arm))

    @property
    def planned_evaluations(self) -> int:
        """Evaluations that fit into evaluation_share, without the one after pretraining."""
        if self.evaluation_share is None:
            return 0
        fitting = self.evaluation_share * self.environment_steps / self.longest_evaluation_steps
        return int(fitting) - (1 if self.imitation.updates else 0)

    @property
    def longest_evaluation_steps(self) -> int:
        """Environment steps of an evaluation in which every episode runs out of time."""
        return self.evaluation_episodes * self.contract.max_steps

    def expert_takeover_in(self, rounds_done: int) -> int:
        """Below which step the expert takes over in the next round; 0: never."""
        grown = max(self.expert_takeover_grows_to - self.expert_takeover_within, 0)
        return self.expert_takeover_within + round(
            grown * min(rounds_done / max(self.rounds, 1), 1.0)
        )

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able form, for the run folder."""
        return _plain(dataclasses.asdict(self))


def _require(condition: bool, name: str, value: object, allowed: str) -> None:
    if not condition:
        raise RobotConfigError(f"{name} is {value!r}; it must be {allowed}")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value
