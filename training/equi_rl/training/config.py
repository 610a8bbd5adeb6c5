"""What one training run on a robot task is: agent, preset, seed, and every number behind them.

Presets:
    paper: the published recipe. 80 demonstrations of the expert that tries a random object, 20
        random episodes, recurrent SAC with one update per step, nothing else.
    fast: the same data and method, made affordable on two CPU cores: the actor starts from the
        demonstrations by imitation, and beside SAC keeps imitating them and its own successes.
    ship: for policies that are deployed. An expert that decides only by what can be seen is asked
        about every state which the policy visits (DAgger). Not comparable with the other two.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import yaml

from equi_core.contract import ImageSpec, PolicyContract
from equi_rl.agents.imitation import ImitationSettings
from equi_rl.agents.sac import Encoder, SacSettings
from equi_rl.data.collate import Augmentation, PixelAugmentation
from equi_rl.envs import TASKS
from equi_rl.experts import FirstChoice
from equi_rl.nets.config import Combination

CROP_SIZE_PX = 90
"""Side of the pictures from which agents that crop take their windows."""
_SCIENTIFIC = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+\s*")


class Preset(str, Enum):
    """How an agent is trained."""

    PAPER = "paper"
    FAST = "fast"
    SHIP = "ship"


@dataclass(frozen=True)
class AgentKind:
    """Which parts of an agent are equivariant, and how its pictures are augmented."""

    combination: Combination
    pixels: PixelAugmentation = PixelAugmentation.NONE
    copies: int = 1


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
    """One run. `robot_run` fills it from a preset; every field can be overridden."""

    task: str
    agent: str = "equi-rsac"
    preset: Preset = Preset.FAST
    seed: int = 0
    group: str = "C4"
    """Symmetry group of the equivariant parts."""
    initial_state: str = "zero"
    """State of the LSTM at the start of an episode: zero, or random (ablation)."""
    demonstrations: int = 80
    first_choice: FirstChoice = FirstChoice.RANDOM
    """How the demonstrating expert chooses the object that it tries first."""
    random_episodes: int = 0
    """Episodes of random actions before learning."""
    rotate: bool = True
    """Whether sampled episodes are turned by a random angle."""
    randomise: bool = False
    """Whether sizes, masses, friction, calibration and depth vary in every second episode."""
    continues: str = ""
    """Folder of an earlier run of the same task and agent, whose episodes and newest weights this
    one starts from instead of demonstrations; steps, updates and seconds are counted on."""
    warm_up_updates: int = 0
    """Updates by imitation alone before the first round."""
    rounds: int = 100
    episodes_per_round: int = 5
    updates_per_round: int = 25
    """Updates while one round of episodes is played; 0 means one per step played."""
    batch_episodes: int = 32
    demonstrations_per_batch: int = 0
    """How many of a batch's episodes are drawn from the demonstrations alone."""
    hand_over_within: int = 0
    """Preset ship: the expert takes over at a step drawn below this, so that an episode in which
    the policy is stuck also shows how to go on; 0: it only comments."""
    hand_over_grows_to: int = 0
    """`hand_over_within` of the last round, reached evenly: a better policy is left alone for
    longer, and asked about where that takes it; 0: the same in every round."""
    imitate_successes: bool = False
    """Whether the actions of an episode in which the agent itself succeeded become labels."""
    evaluate_every: int = 10
    """Rounds between evaluations; each keeps a checkpoint."""
    evaluation_episodes: int = 100
    failing_evaluations: int = 10
    """So many evaluations in a row without a success stop the run."""
    capacity: int = 100_000
    """Transitions held in memory."""
    imitation: ImitationSettings = dataclasses.field(default_factory=ImitationSettings)
    sac: SacSettings = dataclasses.field(default_factory=SacSettings)

    def __post_init__(self) -> None:
        _require(self.task in TASKS, "task", self.task, f"one of {', '.join(TASKS)}")
        _require(self.agent in AGENTS, "agent", self.agent, f"one of {', '.join(AGENTS)}")
        _require(0 <= self.seed < 400, "seed", self.seed, "between 0 and 399")
        for name in (
            "demonstrations",
            "random_episodes",
            "warm_up_updates",
            "updates_per_round",
            "hand_over_within",
            "hand_over_grows_to",
        ):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        for name in (
            "rounds",
            "episodes_per_round",
            "batch_episodes",
            "evaluate_every",
            "evaluation_episodes",
            "failing_evaluations",
        ):
            _require(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        _require(
            0 <= self.demonstrations_per_batch <= self.batch_episodes,
            "demonstrations_per_batch",
            self.demonstrations_per_batch,
            f"between 0 and batch_episodes = {self.batch_episodes}",
        )
        _require(
            self.preset is not Preset.SHIP or self.first_choice is FirstChoice.NEAREST,
            "first_choice",
            self.first_choice.value,
            "nearest for the preset ship: a random choice cannot be learnt from observations",
        )
        _require(
            self.preset is Preset.SHIP or self.hand_over_within == 0,
            "hand_over_within",
            self.hand_over_within,
            "0 except for the preset ship: the others see 80 demonstrations of the expert, no more",
        )
        _require(
            self.hand_over_grows_to == 0 or 0 < self.hand_over_within <= self.hand_over_grows_to,
            "hand_over_grows_to",
            self.hand_over_grows_to,
            f"0, or at least hand_over_within = {self.hand_over_within}, which must be positive",
        )
        _require(
            not self.continues or (self.preset is Preset.SHIP and self.warm_up_updates == 0),
            "continues",
            self.continues,
            "empty, or used with the preset ship and warm_up_updates=0: only weights are taken"
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
    def augmentation(self) -> Augmentation:
        """How sampled episodes are transformed."""
        return Augmentation(self.rotate, self.kind.pixels, copies=self.kind.copies)

    @property
    def contract(self) -> PolicyContract:
        """What the agent sees and does; agents that crop are shown larger pictures."""
        cropped = self.kind.pixels is PixelAugmentation.CROP
        image = ImageSpec(size_px=CROP_SIZE_PX) if cropped else ImageSpec()
        return PolicyContract(task=self.task, image=image)

    def hand_over_in(self, rounds_done: int) -> int:
        """Below which step the expert takes over in the next round; 0: never."""
        grown = max(self.hand_over_grows_to - self.hand_over_within, 0)
        return self.hand_over_within + round(grown * min(rounds_done / self.rounds, 1.0))

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able form, for the run folder."""
        return _plain(dataclasses.asdict(self))


def robot_run(task: str, preset: Preset | str, **changes: Any) -> RobotRun:
    """A run of a preset, with single fields changed."""
    try:
        preset = Preset(preset)
    except ValueError:
        known = ", ".join(item.value for item in Preset)
        raise RobotConfigError(f"preset is '{preset}'; it must be one of {known}") from None
    run = RobotRun(**{"task": task, "preset": preset, **_PRESETS[preset], **changes})
    if run.kind.combination in (Combination.ACTOR_ONLY, Combination.CRITIC_ONLY):
        # An equivariant and a plain network cannot share an encoder.
        run = dataclasses.replace(run, sac=dataclasses.replace(run.sac, encoder=Encoder.SEPARATE))
    return run


def with_settings(run: RobotRun, assignments: Sequence[str]) -> RobotRun:
    """The run with settings changed that are given as text, such as `sac.discount=0.95`."""
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise RobotConfigError(f"--set {assignment}: write name=value, e.g. batch_episodes=8")
        run = _with(run, name.split("."), _value(text), name)
    return run


def _value(text: str) -> Any:
    """What a text stands for in YAML; also numbers like 1e-4, which YAML takes for words."""
    return float(text) if _SCIENTIFIC.fullmatch(text) else yaml.safe_load(text)


def _with(settings: Any, path: list[str], value: Any, name: str) -> Any:
    """A copy of a dataclass in which the field at the end of a path has another value."""
    known = [field.name for field in dataclasses.fields(settings)]
    if path[0] not in known:
        raise RobotConfigError(f"--set {name}: no setting '{path[0]}'; known: {', '.join(known)}")
    old = getattr(settings, path[0])
    if len(path) > 1 and dataclasses.is_dataclass(old):
        value = _with(old, path[1:], value, name)
    elif len(path) > 1 or dataclasses.is_dataclass(old):
        raise RobotConfigError(f"--set {name}: '{path[0]}' does not fit; name a single value")
    elif isinstance(old, Enum):
        value = _member(type(old), value, name)
    elif old is not None and value is not None:
        value = _as_type(type(old), value, name)
    try:
        return dataclasses.replace(settings, **{path[0]: value})
    except (ValueError, TypeError) as error:
        raise RobotConfigError(f"--set {name}: {error}") from None


def _as_type(kind: type, value: Any, name: str) -> Any:
    """The value as a number, flag or word like the one that it replaces."""
    if kind is float and type(value) is int:
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if type(value) is not kind:
        raise RobotConfigError(f"--set {name}: {value!r} is no {kind.__name__}")
    return value


def _member(kind: type[Enum], value: Any, name: str) -> Enum:
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(str(item.value) for item in kind)
        raise RobotConfigError(f"--set {name}: {value!r} is not one of {known}") from None


_PRESETS: Mapping[Preset, dict[str, Any]] = {
    Preset.PAPER: {
        "random_episodes": 20,
        "episodes_per_round": 1,
        "updates_per_round": 0,
        "rounds": 3000,
        "evaluate_every": 50,
        "batch_episodes": 32,
    },
    Preset.FAST: {
        "warm_up_updates": 400,
        "episodes_per_round": 4,
        "updates_per_round": 20,
        "rounds": 200,
        "batch_episodes": 16,
        "demonstrations_per_batch": 8,
        "imitate_successes": True,
        "imitation": ImitationSettings(learning_rate=6e-3, log_std=-2.0),
        "sac": SacSettings(
            discount=0.97,
            trace=0.95,
            target_rate=0.02,
            actor_learning_rate=2e-4,
            critic_learning_rate=1e-3,
            initial_temperature=1e-3,
            target_entropy=-10.0,
            entropy_in_target=False,
            demonstration_weight=20.0,
            critic_first_updates=100,
            updated_critic_judges=False,
            encoder=Encoder.BOTH,
            policy_rate=0.02,
        ),
    },
    Preset.SHIP: {
        "first_choice": FirstChoice.NEAREST,
        "randomise": True,
        "demonstrations": 600,
        "warm_up_updates": 900,
        "episodes_per_round": 10,
        "updates_per_round": 40,
        "rounds": 300,
        "hand_over_within": 30,
        "hand_over_grows_to": 50,
        "batch_episodes": 16,
        "evaluate_every": 20,
        "imitation": ImitationSettings(learning_rate=6e-3, policy_rate=0.005),
    },
}


def _require(condition: bool, name: str, value: object, allowed: str) -> None:
    if not condition:
        raise RobotConfigError(f"{name} is {value!r}; it must be {allowed}")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value.value if isinstance(value, Enum) else value
