# SPDX-License-Identifier: MIT
"""equi-evaluate: how often a policy succeeds, where it fails, and how that looks.

    equi-evaluate runs/picking/checkpoints/best --episodes 200
    equi-evaluate models/block_picking --randomised

Plays the policy's mean on scenes that no run trains or selects on. Takes a training checkpoint, a
model folder, or the run folder of SLAC.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from equi_core.contract import ContractError, PolicyContract
from equi_core.scene_seeds import TEST_SEED
from equi_rl.agents.acting_policy import Policy
from equi_rl.data.atomic_file import NotWrittenError
from equi_rl.data.device import Device, DeviceError, choose_device
from equi_rl.envs import make_env
from equi_rl.envs.arm_options import arm_options
from equi_rl.envs.randomisation import DomainRandomisation
from equi_rl.experts import ExpertConfig
from equi_rl.export.exporter import ExportError, load_policy
from equi_rl.nets.checkpoint import CheckpointError
from equi_rl.results.video import render_episode, write_video
from equi_rl.slac.stored_run import is_slac_run, load_learner, policy_digest
from equi_rl.training.collector import (
    Collector,
    CollectorConfig,
    CollectorError,
    Play,
    Players,
)
from equi_rl.training.evaluation import Evaluation, EvaluationError
from equi_rl.training.rollout import EpisodeOutcome
from equi_rl.training.run_folder import RunFolderError

_LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class EvaluateCommand:
    """Success of a policy with its interval, failure reasons, lengths and videos.

    Example: equi-evaluate models/block_picking --episodes 200 --out runs/picking/evaluation
    """

    policy: Annotated[Path, tyro.conf.Positional]
    """Folder of a training checkpoint or of a model; with SLAC, of the run."""
    episodes: int = 200
    """Episodes to play, each on a scene of its own."""
    seed: int = TEST_SEED
    """Seed of the first scene; the others follow."""
    randomised: bool = False
    """Vary sizes, masses, friction, calibration and depth from scene to scene."""
    stiff_arm: bool = False
    """An arm as stiff as a real one: its steps end at a noticed contact, and are as slow."""
    out: Path | None = None
    """Folder for evaluation.json and videos; without it, nothing is written."""
    videos: Annotated[int, tyro.conf.arg(aliases=["--films"])] = 2
    """Largest number of successes, and of failures, to keep as a video (GIF)."""
    workers: int = 2
    """Processes that run episodes."""
    device: Annotated[Device, tyro.conf.EnumChoicesFromValues] = Device.CPU
    """Where the policy computes. One frame at a time, the CPU is usually the fastest."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    command = tyro.cli(
        EvaluateCommand,
        prog="equi-evaluate",
        description=__doc__,
        args=None if arguments is None else list(arguments),
    )
    console = Console(stderr=True)
    try:
        contract, digest, policy = _load(command.policy)
        outcomes = play_all(command, contract, policy, console)
        result = Evaluation(
            contract.task,
            digest,
            command.seed,
            command.randomised,
            tuple(outcomes),
            stiff_arm=command.stiff_arm,
        )
        if command.out is not None:
            result.save(command.out)
            _write_videos(command, command.out, contract, policy, result)
    except (
        CheckpointError,
        CollectorError,
        ContractError,
        DeviceError,
        EvaluationError,
        ExportError,
        NotWrittenError,
        RunFolderError,
    ) as error:
        console.print(f"equi-evaluate: {error}", markup=False, style="red", soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("stopped; nothing was written")
        return 130
    _print(result, command, Console())
    return 0


def _load(folder: Path) -> tuple[PolicyContract, str, Policy]:
    """Contract, digest of the weights and policy."""
    if is_slac_run(folder):
        learner = load_learner(folder)
        return learner.run.contract, policy_digest(learner), learner.policy()
    return load_policy(folder)


def play_all(
    command: EvaluateCommand, contract: PolicyContract, policy: Policy, console: Console
) -> list[EpisodeOutcome]:
    """Play every episode, spread over processes; the outcomes come in the order of the seeds."""
    if command.episodes < 1 or command.workers < 1 or command.videos < 0:
        raise EvaluationError(
            f"--episodes {command.episodes} and --workers {command.workers} must be at least 1,"
            f" --videos {command.videos} at least 0"
        )
    if not 0 <= command.seed <= 2**31 - command.episodes:
        raise EvaluationError(f"--seed {command.seed} must lie between 0 and 2^31 - episodes")
    if command.seed < TEST_SEED:
        raise EvaluationError(
            f"--seed {command.seed} must be at least {TEST_SEED}: policies are trained and chosen"
            " on scenes below, and their success rate would be too high"
        )
    config = CollectorConfig(
        contract.task,
        ExpertConfig(),
        DomainRandomisation() if command.randomised else None,
        env_options=(("contract", contract), *arm_options(stiff=command.stiff_arm)),
        randomise_every=1,
    )
    seeds = range(command.seed, command.seed + command.episodes)
    policy = policy.to(choose_device(command.device))
    work = Play(policy, tuple(seeds), stochastic=False, label_with_expert=False)
    players = Players(min(command.workers, command.episodes))
    with (
        Collector(config, players) as collector,
        Progress(console=console, disable=not console.is_terminal) as progress,
    ):
        task = progress.add_task(contract.task, total=command.episodes)
        batch = collector.start(work)
        while not batch.is_over:
            progress.update(task, completed=command.episodes - batch.missing)
            time.sleep(_LOOK_EVERY_S)
        return [outcome for _, outcome in collector.finish(batch)]


def _write_videos(
    command: EvaluateCommand,
    folder: Path,
    contract: PolicyContract,
    policy: Policy,
    result: Evaluation,
) -> None:
    """Videos of the first failures, and of the longest successes among the first episodes."""
    for old in (*folder.glob("success_*.gif"), *folder.glob("failure_*.gif")):
        old.unlink()
    failures = [outcome for outcome in result.outcomes if not outcome.success]
    # A long success shows the policy changing its mind; those are worth seeing.
    successes = sorted(
        (outcome for outcome in result.outcomes[:50] if outcome.success),
        key=lambda outcome: outcome.steps,
        reverse=True,
    )
    randomisation = DomainRandomisation() if command.randomised else None
    env = make_env(
        contract.task,
        contract=contract,
        randomisation=randomisation,
        **dict(arm_options(stiff=command.stiff_arm)),
    )
    try:
        for name, chosen in (("success", successes), ("failure", failures)):
            for index, outcome in enumerate(chosen[: command.videos]):
                frames = render_episode(env, policy, outcome.seed)
                write_video(frames, contract, folder / f"{name}_{index}.gif")
    finally:
        env.close()


def _print(result: Evaluation, command: EvaluateCommand, console: Console) -> None:
    varied = ", varied scenes" if command.randomised else ""
    varied += ", stiff arm" if command.stiff_arm else ""
    table = Table(
        title=f"{result.task}, scenes {command.seed} to"
        f" {command.seed + command.episodes - 1}{varied}"
    )
    for heading in ("episodes", "success", "95 % interval", "mean steps to success"):
        table.add_column(heading)
    for name, rate, length in result.rows():
        low, high = rate.interval
        table.add_row(
            name,
            f"{rate.rate:.3f} ({rate.successes}/{rate.episodes})",
            f"{low:.3f} to {high:.3f}",
            "-" if math.isnan(length) else f"{length:.1f}",
        )
    console.print(table)
    for reason, count in result.failures.items():
        seeds = [str(o.seed) for o in result.outcomes if o.failure == reason][:5]
        console.print(f"{count} x {reason} (seeds {', '.join(seeds)})", markup=False)
    if command.out is not None:
        console.print(f"result and videos: {command.out}", markup=False)


if __name__ == "__main__":
    sys.exit(main())
