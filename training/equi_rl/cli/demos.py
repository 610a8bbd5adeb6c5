# SPDX-License-Identifier: MIT
"""`equi-demos`: record expert episodes, count them, and show one as video and filmstrip."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

from equi_rl.data.atomic_file import NotWrittenError
from equi_rl.data.demonstrations import Demo, DemoError, DemoSet, play_demo
from equi_rl.envs import TASKS, HiddenPropertyEnv, make_env
from equi_rl.experts import ExpertConfig, FirstChoice, make_expert
from equi_rl.results.video import replay_frames, write_filmstrip, write_video

_console = Console()
_progress = Console(stderr=True)


@dataclass(frozen=True)
class Record:
    """Record demonstrations to one file.

    Example: equi-demos record --task block_picking --episodes 80 --output picking.npz
    """

    task: str
    """Task, one of your own included."""
    output: Path
    """File to write; the ending is .npz."""
    episodes: int = 80
    """Successful episodes to record; an episode that fails is counted and left out."""
    seed: int = 0
    """Seed of the first episode; the others follow."""
    first_choice: FirstChoice = FirstChoice.RANDOM
    """Which object the expert tries first."""


@dataclass(frozen=True)
class Show:
    """Show one episode: a video of side view and observation, and a filmstrip.

    Example: equi-demos show --task block_pushing --seed 4 --video push.mp4 --filmstrip push.png
    """

    task: str | None = None
    """Play the expert's episode of `--seed` in this task ..."""
    seed: int = 0
    first: Literal["movable", "immovable", "random"] = "random"
    """Which object the expert tries first."""
    file: Path | None = None
    """... or play again an episode of a recorded file."""
    episode: int = 0
    """Which one of the file."""
    video: Path | None = None
    """Write an .mp4 (H.264) or a .gif."""
    filmstrip: Path | None = None
    """Write a .png."""
    frames: int = 8
    """Images in the filmstrip."""


@dataclass(frozen=True)
class Summary:
    """Say what is in a recorded file.

    Example: equi-demos summary picking.npz
    """

    file: Annotated[Path, tyro.conf.Positional]


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    command = tyro.cli(
        Annotated[Record, tyro.conf.subcommand("record")]
        | Annotated[Show, tyro.conf.subcommand("show")]
        | Annotated[Summary, tyro.conf.subcommand("summary")],
        prog="equi-demos",
        description="Record and view expert episodes. Example: equi-demos record --help",
        args=None if arguments is None else list(arguments),
        config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.EnumChoicesFromValues),
    )
    try:
        if not isinstance(command, Summary) and command.task not in (None, *TASKS):
            raise DemoError(f"--task {command.task} is unknown; known: {', '.join(TASKS)}")
        if isinstance(command, Record):
            _record(command)
        elif isinstance(command, Show):
            _show(command)
        else:
            _print_summary(DemoSet.load(command.file))
    except (DemoError, NotWrittenError) as error:
        Console(stderr=True).print(f"equi-demos: {error}", markup=False, soft_wrap=True)
        return 2
    return 0


def _record(command: Record) -> None:
    if command.output.suffix != ".npz" or command.episodes < 1:
        raise DemoError(
            f"--output {command.output} must end with .npz and --episodes {command.episodes} "
            "must be at least 1"
        )
    command.output.parent.mkdir(parents=True, exist_ok=True)
    env = make_env(command.task)
    expert = make_expert(
        command.task, env.contract, ExpertConfig(first_choice=command.first_choice)
    )
    demos: list[Demo] = []
    seed = command.seed
    for _ in track(range(command.episodes), description=command.task, console=_progress):
        while True:
            demo = play_demo(env, expert, seed)
            seed += 1
            if demo.success:
                demos.append(demo)
                break
            _progress.print(f"seed {demo.seed} failed and is left out", markup=False)
    env.close()
    recorded = DemoSet(env.contract, tuple(demos))
    recorded.save(command.output)
    _print_summary(recorded)
    _console.print(
        f"{command.output}: {command.output.stat().st_size / 1e6:.2f} MB, "
        f"{seed - command.seed - len(demos)} failed episodes left out",
        markup=False,
    )


def _show(command: Show) -> None:
    if command.video is None and command.filmstrip is None:
        raise DemoError("nothing to write; give --video NAME.mp4 and/or --filmstrip NAME.png")
    if (command.task is None) == (command.file is None):
        raise DemoError("give either --task (and --seed) or --file (and --episode)")
    if command.file is not None:
        recorded = DemoSet.load(command.file)
        if not 0 <= command.episode < len(recorded.demos):
            raise DemoError(
                f"--episode {command.episode} is not in {command.file}; it has "
                f"0 .. {len(recorded.demos) - 1}"
            )
        env = make_env(recorded.contract.task, contract=recorded.contract)
        demo = recorded.demos[command.episode]
    else:
        env = make_env(str(command.task))
        demo = _played(command, env)
    frames = replay_frames(env, demo)
    env.close()
    for path in (command.video, command.filmstrip):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
    if command.video is not None:
        write_video(frames, env.contract, command.video)
        _console.print(f"wrote {command.video}", markup=False)
    if command.filmstrip is not None:
        write_filmstrip(frames, env.contract, command.filmstrip, command.frames)
        _console.print(f"wrote {command.filmstrip}", markup=False)


def _played(command: Show, env: HiddenPropertyEnv) -> Demo:
    expert = make_expert(env.task, env.contract)
    first = None
    if command.first != "random":
        env.reset(seed=command.seed)
        wanted = command.first == "movable"
        objects = env.state().scene.objects
        first = next(i for i, item in enumerate(objects) if item.movable == wanted)
    return play_demo(env, expert, command.seed, first)


def _print_summary(recorded: DemoSet) -> None:
    table = Table(title=f"demonstrations of {recorded.contract.task}")
    for heading in ("first tried", "episodes", "successes", "mean steps", "least", "most"):
        table.add_column(heading, justify="left" if heading == "first tried" else "right")
    for movable_first in (True, False):
        group = [demo for demo in recorded.demos if demo.movable_first == movable_first]
        lengths = [len(demo.executed_action) for demo in group]
        table.add_row(
            "movable" if movable_first else "immovable",
            str(len(group)),
            str(sum(demo.success for demo in group)),
            f"{sum(lengths) / len(lengths):.1f}" if lengths else "-",
            str(min(lengths, default=0)),
            str(max(lengths, default=0)),
        )
    _console.print(table)


if __name__ == "__main__":
    sys.exit(main())
