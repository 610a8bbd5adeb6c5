"""The ``equi-train`` command: train an experiment in a run folder, or go on with one.

    equi-train carflag --domain carflag-1d --agent equi-ra2c --folder runs/first
    equi-train carflag --domain carflag-1d --agent equi-ra2c --folder runs/first --resume

Each family of experiments is a subcommand: a frozen configuration and a function that trains it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from equi_rl.agents.a2c import A2CError
from equi_rl.carflag_run import CarFlagRun, RunConfigError
from equi_rl.envs.carflag import CarFlagError
from equi_rl.run_folder import RunFolderError

EXPECTED_ERRORS = (A2CError, CarFlagError, RunConfigError, RunFolderError)


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

        from equi_rl.carflag_trainer import CarFlagTrainer

        torch.set_num_threads(1)  # the networks are small; more threads only wait for each other
        trainer = CarFlagTrainer(self.run, self.folder)
        with _display(console, self.run.name) as (show, _):
            return trainer.train(resume=self.resume, report=show)


Command = Annotated[CarFlagCommand, tyro.conf.subcommand("carflag")]


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    console = Console(stderr=True)
    try:
        command = tyro.extras.subcommand_cli_from_dict(
            {"carflag": CarFlagCommand},
            prog="equi-train",
            description=__doc__,
            args=arguments,
        )
        summary = command.execute(console)
    except EXPECTED_ERRORS as error:
        console.print(f"[red]equi-train:[/red] {error}", highlight=False)
        return 2
    except KeyboardInterrupt:
        console.print("stopped; the same command with --resume goes on from the last checkpoint")
        return 130
    Console().print_json(data=summary)
    return 0


class _display:
    """A progress bar on a terminal; on a pipe or file, one line every tenth of the run."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f} steps"),
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
                "%s: %s of %s steps, success %.2f, %.0f steps/s",
                self._title,
                f"{now.steps:,}",
                f"{now.total_steps:,}",
                now.success,
                now.steps_per_s,
            )


if __name__ == "__main__":
    sys.exit(main())
