# SPDX-License-Identifier: MIT
"""Command line of `evaluate`: what is run, under which name it is reported, where it is kept."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from equi_core.scene_seeds import TEST_SEED


@dataclass(frozen=True)
class EvaluateOptions:
    """What the command line of `evaluate` says."""

    episodes: int
    seed: int
    task: str
    cell: str
    driven_by: str
    """policy or expert."""
    model: str
    ground_truth: bool
    """Labels come from the simulated cell's referee instead of the operator."""
    any_order: bool
    record: bool
    sensors: str
    """What of the cameras is recorded: none, depth or clouds."""
    cameras: tuple[str, ...]
    videos: int
    side_view: str
    """Image topic for the video; empty: none is recorded."""
    output: Path
    wait_s: float
    operator: str = ""
    """Who arranges scenes and gives labels, for the report."""


def parse(arguments: Sequence[str]) -> EvaluateOptions:
    """Read the arguments; without --output a folder is named after task and time."""
    parser = argparse.ArgumentParser(
        prog="evaluate",
        description="Run, record and label episodes of the running policy, and report.",
        epilog="Example: ros2 run equi_evaluation evaluate --episodes 50 --ground-truth --record",
    )
    parser.add_argument("--episodes", type=int, default=50, help="number of episodes that count")
    parser.add_argument("--seed", type=int, default=TEST_SEED, help="seed of the first scene")
    parser.add_argument("--task", default="block_picking", help="task of the running policy")
    parser.add_argument("--cell", default="sim", help="name of the cell, for the report")
    parser.add_argument("--driven-by", default="policy", choices=["policy", "expert"])
    parser.add_argument("--model", default="", help="policy folder, for the report")
    parser.add_argument(
        "--ground-truth", action="store_true", help="labels from the simulated cell's referee"
    )
    parser.add_argument("--operator", default="", help="who labels the episodes, for the report")
    parser.add_argument("--any-order", action="store_true", help="count every episode")
    parser.add_argument("--record", action="store_true", help="write a bag per episode")
    parser.add_argument(
        "--record-sensors",
        dest="sensors",
        default="none",
        choices=["none", "depth", "clouds"],
        help="record 16-bit depth images with camera info, or clouds, and every robot state: such "
        "a bag drives perception again",
    )
    parser.add_argument(
        "--cameras", nargs="+", default=["cam_left", "cam_right"], help="names of the cameras"
    )
    parser.add_argument(
        "--videos",
        type=int,
        default=2,
        help="make videos of this many recordings, beginning with the first",
    )
    parser.add_argument(
        "--side-view", default="cam_left/color/image_raw", help="image topic for the video"
    )
    parser.add_argument("--output", type=Path, default=None, help="folder; give it to resume")
    parser.add_argument("--wait-s", type=float, default=90.0, help="wait for the policy node [s]")
    parsed = parser.parse_args(arguments)
    if parsed.output is None:
        stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        parsed.output = Path("runs") / "evaluation" / f"{parsed.task}-{stamp}"
    parsed.cameras = tuple(parsed.cameras)
    return EvaluateOptions(**vars(parsed))
