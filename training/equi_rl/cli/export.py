# SPDX-License-Identifier: MIT
"""`equi-export`: a training checkpoint becomes a model folder that the robot can run.

equi-export runs/picking/checkpoints/best models/block_picking --evaluation runs/picking/evaluation
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from equi_core.files.scene_layout import FILE_NAME
from equi_core.scene_seeds import TEST_SEED
from equi_rl.data.atomic_file import NotWrittenError
from equi_rl.envs import TASKS
from equi_rl.export.exporter import CONTRACT_FILE, ExportError, export
from equi_rl.export.scene_layouts import COUNT, scenes_of_seeds
from equi_rl.nets.checkpoint import CheckpointError, load_checkpoint
from equi_rl.training.evaluation import EvaluationError


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="equi-export",
        description="Convert a training checkpoint into a model folder for the robot.",
        epilog="Example: equi-export runs/picking/checkpoints/best models/block_picking"
        " --evaluation runs/picking/evaluation",
    )
    parser.add_argument("checkpoint", type=Path, help="checkpoint folder")
    parser.add_argument("model", type=Path, help="model folder to write")
    parser.add_argument(
        "--evaluation",
        type=Path,
        help="folder of equi-evaluate: its success rates go onto the card, its videos beside it",
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the model that the folder holds"
    )
    parsed = parser.parse_args(arguments)
    console = Console(stderr=True)
    if (parsed.model / CONTRACT_FILE).exists() and not parsed.overwrite:
        console.print(
            f"equi-export: {parsed.model} already holds a model; give --overwrite to replace it, or"
            " choose another folder. Nothing was changed",
            markup=False,
            style="red",
            soft_wrap=True,
        )
        return 2
    try:
        checkpoint = load_checkpoint(parsed.checkpoint)
        run_folder = parsed.checkpoint.resolve().parent.parent
        is_run = (run_folder / "progress.csv").is_file()
        contract = export(
            checkpoint, parsed.model, parsed.evaluation, run_folder if is_run else None
        )
        if contract.task in TASKS:
            layouts = scenes_of_seeds(contract, TEST_SEED, COUNT)
            layouts.save(parsed.model / FILE_NAME)
    except (CheckpointError, EvaluationError, ExportError, NotWrittenError) as error:
        console.print(f"equi-export: {error}", markup=False, style="red")
        return 2
    console.print(
        f"{parsed.model}: {contract.task}, group {contract.group},"
        f" weights {contract.weights_sha256[:12]}",
        markup=False,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
