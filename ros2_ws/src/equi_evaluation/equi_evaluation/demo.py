# SPDX-License-Identifier: MIT
"""demo: the whole system in the simulated cell, a few episodes, one result line.

    ros2 run equi_evaluation demo                          # block picking, two episodes
    ros2 run equi_evaluation demo --task drawer_opening --episodes 1
    ros2 run equi_evaluation demo --console                # from the browser instead

Starts `sim2real.launch.py` with its log in a file, runs the evaluation in the foreground, and ends
everything. Shows what a robot would do: same nodes, same topics, same ports.
"""

from __future__ import annotations

import argparse
import datetime
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from equi_core.files.plain_data import PlainDataError, read_json
from equi_core.locations.find import NotFoundError, find_model
from equi_core.locations.tasks import PluginError, known_tasks
from equi_core.scene_seeds import TEST_SEED
from equi_evaluation.results import load_results
from equi_ros.node_process import LAUNCH_PID

_END_TIMEOUT_S = 25.0
_TELLING_EPISODES = 2
# Domains whose ports lie above Linux's range for outgoing connections, where no shell, robot or
# test is set up by habit; 231 is the last one whose ports all exist.
_FIRST_DOMAIN = 215
_DOMAINS = 17


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; 0 if every episode was run, whatever its outcome."""
    options = _parse(arguments)
    console = Console()
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = options.output or Path("runs", "demo") / f"{options.task}-{stamp}"
    folder.mkdir(parents=True, exist_ok=True)
    model = _model(options)
    if options.seed is None:
        options.seed = telling_seed(model, options.episodes)
    driver = "expert" if model is None else "policy"
    environment = demo_environment()
    who = f"the trained policy in {model}"
    if model is None:
        who = f"the scripted EXPERT (no trained policy for {options.task} was found)"
    console.print(f"[bold]{options.task}[/] in the simulated cell, driven by {who}")
    domain = environment["ROS_DOMAIN_ID"]
    console.print(f"ROS domain {domain}: `export ROS_DOMAIN_ID={domain}` to look at its topics")
    began_s = time.monotonic()
    log = folder / "launch.log"
    command = [
        "ros2",
        "launch",
        "equi_policy",
        "sim2real.launch.py",
        f"task:={options.task}",
        f"seed:={options.seed}",
    ]
    if model is not None:
        command.append(f"model:={model.resolve()}")
    if options.console:
        console.print("the console's address follows; Ctrl-C ends everything")
        return subprocess.call([*command, "console:=true"], env=environment)
    # However the demonstration is ended, its cell must not stay behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with log.open("w", encoding="utf-8") as file:
        launch = subprocess.Popen(
            command,
            # ROS's own launch hands a SIGINT on to its nodes only if it has no terminal; with one
            # it trusts that Ctrl-C reached them too, which it cannot in a session of their own.
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        code = subprocess.call(
            _evaluation(options, folder, driver, model),
            env={**environment, LAUNCH_PID: str(os.getpid())},
        )
    except KeyboardInterrupt:
        code = 130
    finally:
        _end(launch)
    results = load_results(folder)
    good = sum(result.success for result in results)
    for video in sorted(folder.glob("*.mp4")):
        console.print(f"video   {video}", soft_wrap=True, highlight=False)
    if (folder / "report.html").is_file():
        console.print(f"report  {folder / 'report.html'}", soft_wrap=True, highlight=False)
    console.print(f"log     {log}", soft_wrap=True, highlight=False)
    if not results:
        console.print("[red]no episode was run; the log says why[/]")
        return code or 1
    console.print(
        f"[bold]{good} of {len(results)} episodes succeeded[/], driven by the {driver}, "
        f"{time.monotonic() - began_s:.0f} s in all",
        highlight=False,
    )
    return code


def demo_environment() -> dict[str, str]:
    """The shell's environment, in a ROS domain of the demonstration's own.

    Whatever domain the shell has is left, also an exported one: a real robot may listen there, and
    the demonstration activates what it finds.
    """
    domain = _FIRST_DOMAIN + os.getpid() % _DOMAINS
    return {**os.environ, "ROS_DOMAIN_ID": str(domain)}


def _model(options: argparse.Namespace) -> Path | None:
    """The policy's folder; None if none is given and none is installed for the task."""
    if options.model is not None:
        return Path(options.model)
    try:
        return find_model(options.task)
    except NotFoundError:
        return None


def telling_seed(model: Path | None, episodes: int) -> int:
    """Seed of the first scene of a row that shows the policy's memory, if one is known.

    In the first part of such a row, by the model's own evaluation in simulation, the policy tries
    the immovable object first, has to notice it, and succeeds with the other one. All scenes of the
    row are test scenes.
    """
    if model is None:
        return TEST_SEED
    try:
        evaluation = read_json(model / "evaluation.json")
        told = {
            int(episode["seed"]): episode["success"] and episode["movable_first"] is False
            for episode in evaluation["episodes"]
        }
    except (OSError, PlainDataError, KeyError, TypeError, ValueError):
        return TEST_SEED  # not measured: any scene will do
    for shown in range(min(episodes, _TELLING_EPISODES), 0, -1):
        for seed in sorted(told):
            if all(told.get(seed + index, False) for index in range(shown)):
                return seed
    return TEST_SEED


def _evaluation(
    options: argparse.Namespace, folder: Path, driver: str, model: Path | None
) -> list[str]:
    return [
        "ros2",
        "run",
        "equi_evaluation",
        "evaluate",
        "--episodes",
        str(options.episodes),
        "--seed",
        str(options.seed),
        "--task",
        options.task,
        "--driven-by",
        driver,
        "--model",
        "" if model is None else str(model),
        "--ground-truth",
        "--any-order",
        "--record",
        "--videos",
        str(options.episodes),
        "--wait-s",
        "180",
        "--output",
        str(folder),
    ]


def _end(launch: subprocess.Popen[bytes]) -> None:
    """End the launch as Ctrl-C would, and make sure that it ended."""
    if launch.poll() is not None:
        return
    launch.send_signal(signal.SIGINT)
    try:
        launch.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(launch.pid, signal.SIGKILL)
        launch.wait()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="demo",
        description="Run a few episodes of a task in the simulated cell, with video and report.",
        epilog="Example: ros2 run equi_evaluation demo --task block_picking --episodes 2",
    )
    try:
        tasks = known_tasks()
    except PluginError as error:
        parser.error(str(error))
    parser.add_argument(
        "--task",
        default="block_picking",
        choices=tasks,
        help="one of your own if EQUI_PLUGINS names its module",
    )
    parser.add_argument("--episodes", type=int, default=2, help="number of episodes to run")
    parser.add_argument(
        "--seed",
        type=int,
        default=None,
        help="seed of the first scene; by default one in which the policy needs its memory",
    )
    parser.add_argument(
        "--console", action="store_true", help="run no episodes: open the console in the browser"
    )
    parser.add_argument("--model", type=Path, default=None, help="policy folder")
    parser.add_argument("--output", type=Path, default=None, help="folder of the results")
    options = parser.parse_args(arguments)
    if options.episodes < 1:
        parser.error(f"--episodes is {options.episodes}; it must be at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
