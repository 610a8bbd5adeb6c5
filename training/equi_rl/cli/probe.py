# SPDX-License-Identifier: MIT
"""The ``equi-probe`` command: fits the memory microscope of an exported policy.

    equi-probe models/block_picking

Plays the policy on scenes that nobody was trained on, each twice with either object movable, fits a
linear probe to its LSTM state, tests it on other scenes, and writes ``probe.json`` and
``PROBE_CARD.md`` beside the model. Contract and weights of the model stay as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import torch
import tyro
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from equi_core.belief.probe import PARTS, ProbeError
from equi_core.belief.probe_file import StoredProbe
from equi_core.contract import ContractError, PolicyContract
from equi_core.scene_seeds import TEST_SEED
from equi_rl.agents.acting_policy import ActingPolicy
from equi_rl.data.atomic_file import NotWrittenError
from equi_rl.envs import make_env
from equi_rl.export.exporter import CONTRACT_FILE, ExportError, load_policy
from equi_rl.probe.card import verdict, write_card
from equi_rl.probe.episodes import ProbeEpisode, recorded_pairs
from equi_rl.probe.fit import fit_probe, results_of

FIT_SEED = TEST_SEED + 500_000
"""First scene to fit to: neither trained on nor tested on."""


@dataclass(frozen=True)
class ProbeCommand:
    """What a policy remembers: a linear probe on its LSTM state, with its table.

    Example: equi-probe models/block_picking
    """

    model: Annotated[Path, tyro.conf.Positional]
    """Model folder, as written by equi-export."""
    fit_scenes: int = 60
    """Scenes to fit to; each is played twice."""
    test_scenes: int = 200
    """Scenes to test on; each is played twice, which makes 400 episodes."""
    recorded: Path = Path("runs/probe")
    """Where episodes are kept; what is there already is not played again."""
    out: Path | None = None
    """Folder for probe.json and the card; the model's own by default."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    command = tyro.cli(
        ProbeCommand,
        prog="equi-probe",
        description=__doc__,
        args=None if arguments is None else list(arguments),
    )
    console = Console(stderr=True)
    torch.set_num_threads(1)
    try:
        if not (command.model / CONTRACT_FILE).is_file():
            raise ProbeError(f"{command.model} is not a model folder; export the policy first")
        contract, digest, policy = load_policy(command.model)
        stored = make_probe(command, contract, digest, policy, console)
        folder = command.out or command.model
        folder.mkdir(parents=True, exist_ok=True)
        stored.save(folder)
        card = write_card(stored, folder)
    except (ContractError, ExportError, NotWrittenError, OSError, ProbeError) as error:
        console.print(f"equi-probe: {error}", markup=False, style="red", soft_wrap=True)
        return 2
    except KeyboardInterrupt:
        console.print("stopped; played episodes are kept, run it again to continue")
        return 130
    table = Table(title=f"{stored.task}: which object is the movable one")
    for heading in ("moment", "AUC", "samples", "episodes"):
        table.add_column(heading)
    for result in stored.results:
        numbers = (f"{result.auc:.3f}", str(result.samples), str(result.episodes))
        table.add_row(result.moment, *numbers)
    output = Console()
    output.print(table)
    output.print(verdict(stored), markup=False)
    output.print(f"card: {card}", markup=False)
    return 0


def make_probe(
    command: ProbeCommand,
    contract: PolicyContract,
    digest: str,
    policy: ActingPolicy,
    console: Console,
) -> StoredProbe:
    """Play, fit and test.

    Raises:
        ProbeError: the policy's memory has no symmetry, or too few scenes were asked for.
    """
    network = contract.network
    if not network.get("equivariant_lstm") or network.get("group") in (None, "flip"):
        raise ProbeError(
            f"{command.model}: its LSTM is not equivariant; a probe would not rotate with the scene"
        )
    if command.fit_scenes < 4 or command.test_scenes < 1:
        raise ProbeError("--fit-scenes must be at least 4, --test-scenes at least 1")
    fit_seeds = range(FIT_SEED, FIT_SEED + command.fit_scenes)
    test_seeds = range(TEST_SEED, TEST_SEED + command.test_scenes)
    env = make_env(contract.task, contract=contract)
    played: dict[int, list[ProbeEpisode]] = {}
    try:
        with Progress(console=console, disable=not console.is_terminal) as progress:
            task = progress.add_task(contract.task, total=len(fit_seeds) + len(test_seeds))
            for seeds in (fit_seeds, test_seeds):
                for pair in recorded_pairs(env, policy, digest, seeds, command.recorded):
                    played[pair[0].seed] = pair
                    progress.advance(task)
    finally:
        env.close()
    fitted = [episode for seed in fit_seeds for episode in played[seed]]
    tested = [episode for seed in test_seeds for episode in played[seed]]
    probe = fit_probe(fitted, str(network["group"]), PARTS)
    return StoredProbe(
        task=contract.task,
        contract_sha256=contract.sha256,
        weights_sha256=digest,
        group=probe.group,
        parts=probe.parts,
        channels=probe.channels,
        widths_m=probe.basis.widths_m,
        weights=tuple(tuple(float(f"{value:.9g}") for value in row) for row in probe.weights),
        fitted_seeds=(fit_seeds[0], fit_seeds[-1]),
        tested_seeds=(test_seeds[0], test_seeds[-1]),
        results=results_of(probe, tested),
    )


if __name__ == "__main__":
    sys.exit(main())
