"""The ``equi-train`` command: train an experiment in a run folder, or go on with one.

    equi-train carflag --domain carflag-1d --agent equi-ra2c --folder runs/first
    equi-train carflag --domain carflag-1d --agent equi-ra2c --folder runs/first --resume
    equi-train robot --task block_picking --preset ship --folder runs/picking

Each family of experiments is a subcommand: a frozen configuration and a function that trains it.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from equi_rl.agents.learner import DivergedError
from equi_rl.carflag.a2c import A2CError
from equi_rl.carflag.run import DOMAINS, CarFlagRun, Domain, RunConfigError
from equi_rl.carflag.worlds import CarFlagError
from equi_rl.data.episode import ReplayError
from equi_rl.nets.checkpoint import CheckpointError
from equi_rl.nets.config import ArchitectureError
from equi_rl.training.collector import CollectorError
from equi_rl.training.config import RobotConfigError
from equi_rl.training.run_folder import RunFolderError

EXPECTED_ERRORS = (
    A2CError,
    ArchitectureError,
    CarFlagError,
    CheckpointError,
    CollectorError,
    DivergedError,
    ReplayError,
    RobotConfigError,
    RunConfigError,
    RunFolderError,
)


@dataclass(frozen=True)
class CarFlagCommand:
    """Recurrent A2C, equivariant or plain, on a CarFlag world.

    Example: equi-train carflag --domain carflag-2d --steps 2000000 --folder runs/2d
    """

    run: Annotated[CarFlagRun, tyro.conf.arg(name="")]
    folder: Path
    """Run folder: configuration, progress, TensorBoard scalars, checkpoint."""
    resume: bool = False
    """Go on with the run in the folder; a fresh folder starts from the beginning."""

    def execute(self, console: Console) -> dict[str, Any]:
        """Train to the end with a progress display."""
        import torch

        from equi_rl.carflag.trainer import CarFlagTrainer

        torch.set_num_threads(1)  # the networks are small; more threads only wait for each other
        trainer = CarFlagTrainer(self.run, self.folder)
        with _display(console, self.run.name, "steps") as (show, _):
            return trainer.train(resume=self.resume, report=show)


@dataclass(frozen=True)
class RobotCommand:
    """A recurrent policy for a robot task.

    Example: equi-train robot --task drawer_opening --preset ship --folder runs/drawer
    """

    task: str
    """block_picking, block_pulling, block_pushing or drawer_opening."""
    folder: Path
    """Run folder: configuration, progress, TensorBoard scalars, memory, checkpoints."""
    preset: str = "ship"
    """paper: the published recipe. fast: the same on two CPU cores, warm-started. ship: an expert
    labels what the policy visits; for policies that are deployed."""
    agent: str = "equi-rsac"
    """equi-rsac, rsac, equi-actor-rsac, equi-critic-rsac, equi-cnn-rsac, rad-crop-rsac or
    drq-shift-rsac."""
    seed: int = 0
    group: str = "C4"
    """Symmetry group: C4, C8, D4 or D8."""
    rotate: bool = True
    """Turn sampled episodes by random angles."""
    demonstrations: int | None = None
    """Episodes of the expert to start from; default: the preset's."""
    rounds: int | None = None
    """Rounds of playing and learning; default: the preset's."""
    evaluation_episodes: int = 100
    set: tuple[str, ...] = ()
    """Any other setting as name=value, for example sac.demonstration_weight=0.1."""
    resume: bool = False
    """Go on with the run in the folder; a fresh folder starts from the beginning."""

    def execute(self, console: Console) -> dict[str, Any]:
        """Train to the end with a progress display."""
        import torch

        from equi_rl.training.config import robot_run, with_settings
        from equi_rl.training.trainer import RobotTrainer

        torch.set_num_threads(1)  # the other core plays episodes
        asked = {"rounds": self.rounds, "demonstrations": self.demonstrations}
        changes = {name: value for name, value in asked.items() if value is not None}
        run = robot_run(
            self.task,
            self.preset,
            agent=self.agent,
            seed=self.seed,
            group=self.group,
            rotate=self.rotate,
            evaluation_episodes=self.evaluation_episodes,
            **changes,
        )
        run = with_settings(run, self.set)
        trainer = RobotTrainer(run, self.folder)
        with _display(console, f"{self.task} {self.agent}", "rounds") as (show, _):
            return trainer.train(resume=self.resume, report=_robot_report(run, show))


def _robot_report(run: Any, show: Callable[[Any], None]) -> Callable[[Any, dict[str, float]], None]:
    """Translate the trainer's progress for the display, which counts rounds here."""
    from equi_rl.carflag.trainer import Progress as Shown

    def report(progress: Any, figures: dict[str, float]) -> None:
        recent = progress.recent[-50:]
        success = sum(recent) / len(recent) if recent else float("nan")
        speed = progress.environment_steps / progress.seconds if progress.seconds else 0.0
        show(Shown(progress.rounds, run.rounds, success, speed))

    return report


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    console = Console(stderr=True)
    try:
        command = _parse(sys.argv[1:] if arguments is None else arguments)
        summary = command.execute(console)
    except EXPECTED_ERRORS as error:
        console.print(f"[red]equi-train:[/red] {error}", highlight=False)
        return 2
    except KeyboardInterrupt:
        console.print("stopped; the same command with --resume goes on from the last checkpoint")
        return 130
    Console().print_json(data=summary)
    return 0


def _parse(arguments: Sequence[str]) -> CarFlagCommand | RobotCommand:
    """The command that the arguments describe; CarFlag's defaults are those of its domain."""
    peek = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    peek.add_argument("--domain", nargs="?")
    domain: Domain | None = peek.parse_known_args(arguments)[0].domain
    defaults = tyro.MISSING_NONPROP
    if domain in DOMAINS:
        defaults = CarFlagCommand(CarFlagRun(domain), folder=tyro.MISSING)
    commands: Any = (
        Annotated[CarFlagCommand, tyro.conf.subcommand("carflag", default=defaults)]
        | Annotated[RobotCommand, tyro.conf.subcommand("robot")]
    )
    command: CarFlagCommand | RobotCommand = tyro.cli(
        commands, prog="equi-train", description=__doc__, args=arguments
    )
    return command


class _display:
    """A progress bar on a terminal; on a pipe or file, one line every tenth of the run."""

    def __init__(self, console: Console, title: str, counted: str) -> None:
        self._console = console
        self._title = title
        self._counted = counted
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {counted}"),
            TextColumn("success {task.fields[success]:.2f}  {task.fields[speed]:,.0f} steps/s"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tenth = -1

    def __enter__(self) -> tuple[Callable[[Any], None], Progress]:
        self._progress.start()
        self._task = self._progress.add_task(self._title, total=1, success=float("nan"), speed=0.0)
        return self._show, self._progress

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _show(self, now: Any) -> None:
        self._progress.update(
            self._task,
            completed=now.steps,
            total=now.total_steps,
            success=now.success,
            speed=now.steps_per_s,
        )
        tenth = 10 * now.steps // now.total_steps
        if not self._console.is_terminal and tenth > self._tenth:
            self._tenth = tenth
            logging.getLogger(__name__).info(
                "%s: %s of %s %s, success %.2f, %.0f steps/s",
                self._title,
                f"{now.steps:,}",
                f"{now.total_steps:,}",
                self._counted,
                now.success,
                now.steps_per_s,
            )


if __name__ == "__main__":
    sys.exit(main())
