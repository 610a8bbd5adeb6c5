# SPDX-License-Identifier: MIT
"""The Python API: what `import equi_rl` offers.

    import equi_rl

    env = equi_rl.make_env("block_picking")
    policy = equi_rl.load_policy("models/block_picking")
    result = equi_rl.rollout(policy, env, video="episode.gif")
    print(result.success, result.steps)

Everything here is a thin, typed door to the modules that do the work; the commands (`equi-train`,
`equi-evaluate`, ...) use the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from equi_core.contract import ACTION_ORDER, PolicyContract
from equi_core.scene_seeds import TEST_SEED
from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.audit.environment import ElementAudit, audit_environment
from equi_rl.audit.task import audit_task
from equi_rl.envs import ENV_IDS, TASKS, make_env
from equi_rl.export import exporter
from equi_rl.nets.checkpoint import load_checkpoint
from equi_rl.nets.equivariance import ElementError, actor_errors
from equi_rl.nets.memories import LstmState, Memory, register_memory
from equi_rl.recurrent_sac.agent import RecurrentSac
from equi_rl.recurrent_sac.config import RecurrentSacConfig, Symmetry
from equi_rl.training.config import RobotRun
from equi_rl.training.presets import robot_run

if TYPE_CHECKING:
    from equi_rl.envs import HiddenPropertyEnv
    from equi_rl.nets.networks import Actor, ActorWeights
    from equi_rl.training.progress import Progress

__all__ = [
    "TASKS",
    "Memory",
    "Policy",
    "PolicyState",
    "RecurrentSac",
    "RecurrentSacConfig",
    "RobotRun",
    "Rollout",
    "Symmetry",
    "TrainingResult",
    "audit_policy",
    "audit_world",
    "export_policy",
    "load_policy",
    "make_env",
    "register_memory",
    "robot_run",
    "rollout",
    "train",
]


@dataclass(frozen=True)
class PolicyState:
    """What a policy carries from step to step of an episode; never changed in place."""

    memory: LstmState
    executed: NDArray[np.float32]
    """(5,) action executed last; zeros before the first step."""


class Policy:
    """A trained policy of a robot task.

    Attributes:
        contract: what it sees and does.
        weights_sha256: digest of its weights.
    """

    def __init__(self, contract: PolicyContract, weights_sha256: str, acting: ActingPolicy) -> None:
        self.contract = contract
        self.weights_sha256 = weights_sha256
        self._acting = acting

    def start(self, seed: int = 0) -> PolicyState:
        """State before the first observation; `seed` matters to networks that start at random."""
        return PolicyState(self._acting.start(seed), np.zeros(len(ACTION_ORDER), np.float32))

    def act(
        self, observation: NDArray[np.float32], state: PolicyState
    ) -> tuple[NDArray[np.float32], PolicyState]:
        """Mean action (5,) in [-1, 1] for an observation (2, S, S), and the state after it.

        The state assumes that the action is executed as it is; `executed` puts in what was.
        """
        action, memory = self._acting.act(observation, state.executed, state.memory)
        return action, PolicyState(memory, action)

    def executed(self, state: PolicyState, action: NDArray[np.float32]) -> PolicyState:
        """The state with the action (5,) that the environment really executed."""
        return PolicyState(state.memory, np.asarray(action, dtype=np.float32))


@dataclass(frozen=True)
class Rollout:
    """One episode of a policy."""

    seed: int
    steps: int
    success: bool
    failure: str
    """Why it ended without success; empty on success and when time ran out."""
    total_reward: float


@dataclass(frozen=True)
class TrainingResult:
    """Where a finished run lies and what it reached."""

    folder: Path
    summary: dict[str, Any]

    @property
    def best_checkpoint(self) -> Path:
        """Folder of the checkpoint with the highest success in the run's own evaluations."""
        return self.folder / "checkpoints" / "best"


def load_policy(folder: Path | str) -> Policy:
    """The policy of a model folder (`models/block_picking`) or of a training checkpoint.

    Raises:
        ContractError, ExportError, CheckpointError: it is missing, damaged or was changed; all are
            ValueErrors that name the file.
    """
    return Policy(*exporter.load_policy(Path(folder)))


def rollout(
    policy: Policy,
    env: HiddenPropertyEnv | None = None,
    *,
    seed: int = TEST_SEED,
    video: Path | str | None = None,
) -> Rollout:
    """Play one episode with the policy's mean action.

    Args:
        policy: what acts.
        env: environment of its task; None makes one and closes it again.
        seed: of the scene; the default is the first one that no policy is trained on.
        video: where to write the episode, ending in .gif or .mp4; None writes nothing.
    """
    from equi_rl.results.video import EpisodeFilm, write_video

    if env is not None and env.task != policy.contract.task:
        raise ValueError(
            f"the policy is for {policy.contract.task!r}, the environment for {env.task!r}; make"
            f" the environment with make_env({policy.contract.task!r})"
        )
    world = env or make_env(policy.contract.task, contract=policy.contract)
    try:
        film = EpisodeFilm(world) if video is not None else None
        observation, info = world.reset(seed=seed)
        state, steps, total, ended = policy.start(seed), 0, 0.0, False
        if film is not None:
            film.add(observation, None, False)
        while not ended:
            action, state = policy.act(observation, state)
            observation, reward, terminated, truncated, info = world.step(action)
            state = policy.executed(state, info["executed_action"])
            steps, total = steps + 1, total + reward
            ended = terminated or truncated
            if film is not None:
                film.add(observation, info["executed_action"], bool(info["success"]))
        if film is not None:
            write_video(film.frames, policy.contract, Path(cast("Path | str", video)))
        return Rollout(seed, steps, bool(info["success"]), str(info["failure"]), total)
    finally:
        if env is None:
            world.close()


def train(
    run: RobotRun,
    folder: Path | str,
    *,
    resume: bool = False,
    report: Callable[[Progress, dict[str, float]], None] | None = None,
) -> TrainingResult:
    """Train to the end of the run; `robot_run("block_picking", "ship")` makes a configuration.

    Args:
        run: what to train, and how.
        folder: run folder, as `equi-train robot --folder`.
        resume: continue the run in the folder.
        report: called with progress and metrics as the run goes on.
    """
    from equi_rl.training.trainer import RobotTrainer

    summary = RobotTrainer(run, Path(folder)).train(resume=resume, report=report)
    return TrainingResult(Path(folder), summary)


def audit_policy(policy: Policy, steps: int = 20, episodes: int = 2) -> list[ElementError]:
    """How far the policy's mean is from equivariance, for every element of its group.

    Args:
        policy: what is measured, on random histories.
        steps: length of the histories.
        episodes: their number.
    """
    acting = policy._acting
    return actor_errors(cast("Actor", _Expanded(acting)), steps, episodes)


def audit_world(
    task: str, group: str = "C4", *, episodes: int = 5, steps: int = 5, starts: int = 50
) -> list[ElementAudit]:
    """How far a task violates the four conditions of a group-invariant POMDP, per element."""
    audited = audit_task(ENV_IDS.get(task, task), group)
    return audit_environment(audited, episodes, steps, starts)


def export_policy(checkpoint: Path | str, model: Path | str) -> PolicyContract:
    """Make a model folder, which the robot can run, of a training checkpoint.

    An existing model is refused, as `equi-export` does without `--overwrite`.
    """
    folder = Path(model)
    if (folder / exporter.CONTRACT_FILE).exists():
        raise FileExistsError(f"{folder} already holds a model; choose another folder")
    return exporter.export(load_checkpoint(Path(checkpoint)), folder)


class _Expanded:
    """An acting policy in the place of the actor whose expanded weights it holds."""

    def __init__(self, acting: ActingPolicy) -> None:
        self.config = acting.config
        self._weights = acting.weights

    def dense(self) -> ActorWeights:
        return self._weights
