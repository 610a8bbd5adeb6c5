# SPDX-License-Identifier: MIT
"""`equi-models`: lists the exported policies, shows one, and verifies that none was changed.

equi-models list
equi-models show block_picking
equi-models verify                     # every model; exit code 1 if one is not intact
equi-models verify runs/my_policy/
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from equi_core.contract import ContractError
from equi_core.locations.find import NotFoundError, find_model
from equi_core.model_zoo.model_folder import CARD_FILE, Model, found_models, load_all
from equi_core.model_zoo.zoo_page import percent, zoo_table

EXIT_OK, EXIT_BROKEN, EXIT_WRONG_INPUT = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    options = _parser().parse_args(arguments)
    console = Console(soft_wrap=True)
    try:
        if options.command == "show":
            return _show(Model.load(_folder(options.model)), console)
        paths = [_folder(name) for name in options.models] or found_models()
    except (NotFoundError, ContractError) as error:
        sys.stderr.write(f"equi-models: {error}\n")
        return EXIT_WRONG_INPUT
    if not paths:
        sys.stderr.write(
            "equi-models: no model was found; `source env.sh` first, or put one into "
            "~/.ros/equi/models or a folder named in EQUI_MODELS\n"
        )
        return EXIT_WRONG_INPUT
    return _list(paths, options.markdown) if options.command == "list" else _verify(paths, console)


def _list(paths: list[Path], markdown: bool) -> int:
    models, unreadable = load_all(paths)
    if markdown:
        sys.stdout.write(zoo_table(models))
    else:
        table = Table("model", "task", "group", "trained by", "success", "weights", "folder")
        for model in models:
            table.add_row(
                *(model.name, model.contract.task, model.contract.group),
                *(model.contract.provenance.preset, percent(model.success())),
                *(f"{model.weights_bytes / 1e6:.2f} MB", str(model.folder)),
            )
        Console(width=None if sys.stdout.isatty() else 200).print(table)
    for path, reason in unreadable.items():
        sys.stderr.write(f"{path}: {reason}\n")
    return EXIT_BROKEN if unreadable else EXIT_OK


def _show(model: Model, console: Console) -> int:
    contract, origin = model.contract, model.contract.provenance
    image, action, box = contract.image, contract.action, contract.workspace
    rows = {
        "folder": str(model.folder),
        "task": contract.task,
        "symmetry group": contract.group,
        "success on unseen scenes": percent(model.success()),
        "agent, preset, seed": f"{origin.agent}, {origin.preset}, {origin.seed}",
        "environment steps, updates": f"{origin.environment_steps:,}, {origin.gradient_steps:,}",
        "image": f"{image.size_px} x {image.size_px} px over {image.view_m:g} m",
        "largest step": f"{action.max_step_m:g} m, {action.max_yaw_step_rad:.3f} rad",
        "workspace [m]": f"x {box.x_min_m:g} to {box.x_max_m:g}, "
        f"y {box.y_min_m:g} to {box.y_max_m:g}, z {box.z_min_m:g} to {box.z_max_m:g}",
        "control period, episode": f"{contract.control_period_s:g} s, {contract.max_steps} steps",
        "weights": f"{model.weights_bytes / 1e6:.2f} MB, sha256 {contract.weights_sha256}",
        "contract": f"sha256 {contract.sha256}, {'signed' if model.signed else 'not signed'}",
        "card": str(model.folder / CARD_FILE),
    }
    for name, value in rows.items():
        console.print(f"{name:<28} {value}", markup=False, highlight=False)
    problems = model.problems()
    for problem in problems:
        console.print(f"problem: {problem}", style="red", markup=False)
    return EXIT_BROKEN if problems else EXIT_OK


def _verify(paths: list[Path], console: Console) -> int:
    models, unreadable = load_all(paths)
    broken = [(path, [reason]) for path, reason in unreadable.items()]
    for model in models:
        problems = model.problems()
        if problems:
            broken.append((model.folder, problems))
        else:
            console.print(f"intact  {model.name:<20} {model.folder}", markup=False, highlight=False)
    for folder, problems in broken:
        for problem in problems:
            console.print(f"BROKEN  {folder.name:<20} {problem}", markup=False, highlight=False)
    return EXIT_BROKEN if broken else EXIT_OK


def _folder(name: str) -> Path:
    """A model by name, by path, or by the path of a folder beside us."""
    if (Path(name) / "contract.json").is_file():
        name = str(Path(name).absolute())
    return find_model(name.rstrip(os.sep) or name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="equi-models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    listed = commands.add_parser("list", help="every model that model:= finds")
    listed.add_argument("models", nargs="*", help="only these names or folders")
    listed.add_argument("--markdown", action="store_true", help="the table of models/README.md")
    shown = commands.add_parser("show", help="what one model sees, does and has reached")
    shown.add_argument("model", help="name, or path of a folder")
    verified = commands.add_parser("verify", help="compare every file with its digest")
    verified.add_argument("models", nargs="*", help="names or folders; none: every model")
    return parser


if __name__ == "__main__":
    sys.exit(main())
