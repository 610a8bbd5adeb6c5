# SPDX-License-Identifier: MIT
"""equi-train: train an experiment in a run folder, or resume one.

    equi-train carflag --domain carflag-1d --agent equi-ra2c --folder runs/first
    equi-train carflag --domain carflag-1d --agent equi-ra2c --folder runs/first --resume
    equi-train dreamer --domain carflag-1d --agent dreamer-v3 --folder runs/dreamer
    equi-train robot --task block_picking --preset ship --folder runs/picking
    equi-train robot --task block_picking --preset paper --sac.tau 0.01 --folder runs/tau
    equi-train slac --task block_picking --folder runs/slac

Each family of experiments is a subcommand whose flags are the fields of its frozen configuration.
Flags override the preset (or the domain's defaults), in any order; --help after --preset shows the
preset's values.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import tyro
from rich.console import Console

from equi_rl.agents.learner import DivergedError
from equi_rl.carflag.a2c import A2CError
from equi_rl.carflag.dreamer.run import DreamerRun
from equi_rl.carflag.run import DOMAINS, CarFlagRun, Domain, RunConfigError
from equi_rl.carflag.worlds import CarFlagError
from equi_rl.cli.progress_display import ProgressDisplay, Status
from equi_rl.cluster.worker import ClusterError
from equi_rl.data.atomic_file import NotWrittenError
from equi_rl.data.device import Device, DeviceError, choose_device
from equi_rl.data.episode import ReplayError
from equi_rl.data.folder_lease import FolderInUseError
from equi_rl.envs import TASKS
from equi_rl.nets.checkpoint import CheckpointError
from equi_rl.nets.config import ArchitectureError
from equi_rl.slac.config import AGENT, SlacConfigError, SlacRun
from equi_rl.training.collector import CollectorError, Players
from equi_rl.training.config import AGENTS, Preset, RobotConfigError, RobotRun
from equi_rl.training.presets import robot_run
from equi_rl.training.progress import Progress
from equi_rl.training.run_folder import RunFolderError

EXPECTED_ERRORS = (
    A2CError,
    ArchitectureError,
    CarFlagError,
    CheckpointError,
    ClusterError,
    CollectorError,
    DeviceError,
    DivergedError,
    NotWrittenError,
    ReplayError,
    RobotConfigError,
    RunConfigError,
    RunFolderError,
    SlacConfigError,
)
FOLDER_IN_USE_STATUS = os.EX_TEMPFAIL
"""Exit status that tells a sweep to try again later."""
_DEFAULT_PRESET = Preset.SHIP
_RECENT_EPISODES = 50

# Settings take True or False; only what is no setting of the run is a bare flag.
_Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff]
_CarFlagSettings = Annotated[CarFlagRun, tyro.conf.arg(name=""), tyro.conf.FlagConversionOff]
_RobotSettings = Annotated[
    RobotRun,
    tyro.conf.arg(name=""),
    tyro.conf.FlagConversionOff,
    tyro.conf.EnumChoicesFromValues,
]
_SlacSettings = Annotated[
    SlacRun,
    tyro.conf.arg(name=""),
    tyro.conf.FlagConversionOff,
    tyro.conf.EnumChoicesFromValues,
]
_Players = Annotated[Players, tyro.conf.arg(name=""), tyro.conf.EnumChoicesFromValues]


@dataclass(frozen=True)
class CarFlagCommand:
    """Recurrent A2C, equivariant or plain, on a CarFlag world.

    Example: equi-train carflag --domain carflag-2d --steps 2000000 --folder runs/2d
    """

    run: _CarFlagSettings
    folder: Path
    """Run folder: configuration, progress, TensorBoard scalars, checkpoint."""
    resume: _Flag = False
    """Resume the run in the folder; a fresh folder starts from the beginning."""

    def execute(self, console: Console) -> dict[str, Any]:
        """Train to the end with a progress display."""
        import torch

        from equi_rl.carflag.trainer import CarFlagTrainer

        torch.set_num_threads(1)  # the networks are small; more threads only wait for each other
        trainer = CarFlagTrainer(self.run, self.folder)
        with ProgressDisplay(console, self.run.name, "steps", trainer.folder) as show:
            return trainer.train(resume=self.resume, report=lambda now: show(Status(*now)))


@dataclass(frozen=True)
class DreamerCommand:
    """DreamerV2 or DreamerV3 on a CarFlag world, trained by sheeprl (`make baselines` once).

    Example: equi-train dreamer --domain carflag-2d --steps 300000 --folder runs/dreamer
    """

    run: Annotated[DreamerRun, tyro.conf.arg(name="")]
    folder: Path
    """Run folder: configuration, progress, what sheeprl wrote."""
    resume: _Flag = False
    """Enter the run in the folder: a finished one is reported, a stopped one starts again."""

    def execute(self, console: Console) -> dict[str, Any]:
        """Train to the end with a progress display."""
        from equi_rl.carflag.dreamer.trainer import DreamerTrainer

        trainer = DreamerTrainer(self.run, self.folder)
        with ProgressDisplay(console, self.run.name, "steps", trainer.folder) as show:
            return trainer.train(resume=self.resume, report=lambda now: show(Status(*now)))


@dataclass(frozen=True)
class RobotCommand:
    """A recurrent policy for a robot task.

    Example: equi-train robot --task drawer_opening --preset ship --folder runs/drawer
    """

    run: _RobotSettings
    folder: Path
    """Run folder: configuration, progress, TensorBoard scalars, replay buffer, checkpoints."""
    players: _Players = field(default_factory=Players)
    device: Annotated[Device, tyro.conf.EnumChoicesFromValues] = Device.CPU
    """Where the learner computes: a GPU (cuda), the CPU, or whatever is there (auto). Rounding
    differs between devices, so a run is repeated to the bit on the same one only."""
    resume: _Flag = False
    """Resume the run in the folder; a fresh folder starts from the beginning. With more --rounds or
    --environment-steps than before, a finished run is extended."""

    def execute(self, console: Console) -> dict[str, Any]:
        """Train to the end with a progress display."""
        from equi_rl.training.trainer import RobotTrainer

        self.players.require_reachable()  # before the folder is made
        trainer = RobotTrainer(self.run, self.folder, self.players, choose_device(self.device))
        budget = self.run.environment_steps
        counted = "steps" if budget else "rounds"
        title = f"{self.run.task} {self.run.agent}"
        with ProgressDisplay(console, title, counted, trainer.folder) as show:

            def report(progress: Progress, _: dict[str, float]) -> None:
                if (pretraining := _pretraining(self.run, progress)) is not None:
                    show(pretraining)
                    return
                recent = progress.recent[-_RECENT_EPISODES:]
                success = sum(recent) / len(recent) if recent else float("nan")
                speed = progress.environment_steps / progress.seconds if progress.seconds else 0.0
                done, total = progress.rounds, self.run.rounds
                if budget:
                    done, total = progress.environment_steps, budget
                show(Status(done, total, success, speed))

            return trainer.train(resume=self.resume, report=report)


@dataclass(frozen=True)
class SlacCommand:
    """SLAC, a stochastic latent actor-critic, on a robot task.

    Example: equi-train slac --task block_picking --batch-episodes 8 --folder runs/slac
    """

    run: _SlacSettings
    folder: Path
    """Run folder: configuration, progress, TensorBoard scalars, replay buffer, checkpoint."""
    players: _Players = field(default_factory=Players)
    resume: _Flag = False
    """Resume the run in the folder; a fresh folder starts from the beginning. With more
    --environment-steps than before, a finished run is extended."""

    def execute(self, console: Console) -> dict[str, Any]:
        """Train to the end with a progress display."""
        from equi_rl.slac.trainer import SlacTrainer

        self.players.require_reachable()  # before the folder is made
        trainer = SlacTrainer(self.run, self.folder, self.players)
        title = f"{self.run.task} {AGENT}"
        with ProgressDisplay(console, title, "steps", trainer.folder) as show:

            def report(progress: Progress, _: dict[str, float]) -> None:
                show(_slac_status(self.run, progress))

            return trainer.train(resume=self.resume, report=report)


Command: TypeAlias = CarFlagCommand | DreamerCommand | RobotCommand | SlacCommand


def _slac_status(run: SlacRun, progress: Progress) -> Status:
    """How far it is: demonstrations, updates of the latent model, environment steps."""
    unknown = float("nan")
    if not progress.updates and not progress.rounds:
        return Status(
            min(progress.episodes, run.demonstrations),
            *(run.demonstrations, unknown, 0.0, "demonstrations"),
        )
    if not progress.rounds:
        return Status(
            progress.updates, run.latent_updates, unknown, 0.0, "updates of the latent model"
        )
    recent = progress.recent[-_RECENT_EPISODES:]
    speed = progress.environment_steps / progress.seconds if progress.seconds else 0.0
    success = sum(recent) / len(recent) if recent else unknown
    return Status(progress.environment_steps, run.environment_steps, success, speed)


def _pretraining(run: RobotRun, progress: Progress) -> Status | None:
    """How far it is before the first round; None from then on."""
    if progress.rounds:
        return None
    unknown, planned = float("nan"), run.imitation.updates
    if not progress.updates and run.demonstrations:
        demonstrations = min(progress.episodes, run.demonstrations)
        return Status(demonstrations, run.demonstrations, unknown, 0.0, "demonstrations")
    if progress.updates and planned:
        return Status(progress.updates, planned, unknown, 0.0, "updates of imitation")
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    console = Console(stderr=True)
    command: Command | None = None
    try:
        command = parse(sys.argv[1:] if arguments is None else arguments)
        summary = command.execute(console)
    except FolderInUseError as error:
        console.print(f"equi-train: {error}", markup=False, style="red", soft_wrap=True)
        return FOLDER_IN_USE_STATUS
    except EXPECTED_ERRORS as error:
        console.print(f"equi-train: {error}", markup=False, style="red", soft_wrap=True)
        return 2
    except OSError as error:
        if command is None or not _is_about(error, command.folder):
            raise
        console.print(
            f"equi-train: {error.filename} cannot be written: {error.strerror}; choose another"
            " --folder, or make this one writable",
            markup=False,
            style="red",
            soft_wrap=True,
        )
        return 2
    except KeyboardInterrupt:
        console.print("stopped; the same command with --resume continues from the last checkpoint")
        return 130
    Console().print_json(data=summary)
    return 0


def _is_about(error: OSError, folder: Path) -> bool:
    """Whether it failed on a folder, something in it, or a parent that had to be made for it."""
    if error.filename is None:
        return False
    path, folder = Path(error.filename).absolute(), folder.absolute()
    return path.is_relative_to(folder) or folder.is_relative_to(path)


def parse(arguments: Sequence[str]) -> Command:
    """The command that the arguments describe, with the defaults of its preset or domain."""
    families: dict[str, tuple[type[Any], Any]] = {
        "carflag": (CarFlagCommand, _carflag_defaults),
        "dreamer": (DreamerCommand, lambda _: None),
        "robot": (RobotCommand, _robot_defaults),
        "slac": (SlacCommand, lambda _: None),
    }
    command: Command
    _require_known_pair(arguments)
    if arguments and arguments[0] in families:
        kind, defaults = families[arguments[0]]
        command = tyro.cli(
            kind,
            prog=f"equi-train {arguments[0]}",
            args=arguments[1:],
            default=defaults(arguments[1:]),
        )
        return command
    # No family, or an unknown one: tyro lists them.
    listed: Any = (
        Annotated[CarFlagCommand, tyro.conf.subcommand("carflag")]
        | Annotated[DreamerCommand, tyro.conf.subcommand("dreamer")]
        | Annotated[RobotCommand, tyro.conf.subcommand("robot")]
        | Annotated[SlacCommand, tyro.conf.subcommand("slac")]
    )
    command = tyro.cli(listed, prog="equi-train", description=__doc__, args=arguments)
    return command


def _require_known_pair(arguments: Sequence[str]) -> None:
    """Refuse by name what tyro would refuse by its spelling: SLAC away from the robot tasks."""
    family, agent = (arguments[0] if arguments else ""), _peek(arguments, "--agent")
    if family in ("carflag", "dreamer") and agent == AGENT:
        raise SlacConfigError(
            f"agent is '{AGENT}'; it does not exist on CarFlag. SLAC is trained on the robot tasks:"
            f" equi-train slac --task {TASKS[0]}"
        )
    domain = _peek(arguments, "--domain")
    if family == "slac" and domain is not None:
        raise SlacConfigError(
            f"domain is '{domain}'; SLAC does not exist on CarFlag. It takes a robot task (--task"
            f" {', '.join(TASKS)}); for CarFlag use `equi-train carflag` or `equi-train dreamer`"
        )


def _carflag_defaults(arguments: Sequence[str]) -> Any:
    """Defaults of the domain, if one is named."""
    domain: Domain | None = _peek(arguments, "--domain")
    if domain not in DOMAINS:
        return None
    return CarFlagCommand(CarFlagRun(domain), folder=tyro.MISSING)


def _robot_defaults(arguments: Sequence[str]) -> RobotCommand:
    """Defaults of the preset, agent and task that are named; the task itself has none."""
    preset = _peek(arguments, "--preset") or _DEFAULT_PRESET
    agent = _peek(arguments, "--agent")
    task = _peek(arguments, "--task")  # some budgets depend on it
    run = robot_run(
        task if task in TASKS else TASKS[0], preset, agent if agent in AGENTS else "equi-rsac"
    )
    # A run without a task is not valid, so only tyro's own copy loses it.
    object.__setattr__(run, "task", tyro.MISSING)
    return RobotCommand(run, folder=tyro.MISSING)


def _peek(arguments: Sequence[str], option: str) -> Any:
    """Value of one option, before the others can be understood; None without it."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(option, nargs="?", dest="value")
    return parser.parse_known_args(arguments)[0].value


if __name__ == "__main__":
    sys.exit(main())
