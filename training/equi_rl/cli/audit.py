# SPDX-License-Identifier: MIT
"""`equi-audit`: prints how symmetric a network or an environment is.

equi-audit network --group C4                                      a fresh network
equi-audit network --checkpoint runs/picking/checkpoints/best      a trained one
equi-audit environment equi/BlockPicking-v0                        the theory's four conditions
equi-audit training --group D4 --updates 100                       errors before and after updates
equi-audit params                                                  parameter counts of all variants
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from equi_rl.audit.environment import Differences
from equi_rl.nets.config import GROUP_CHOICES, ArchitectureError, Combination, reference_config
from equi_rl.nets.equivariance import ElementError, actor_errors, critic_errors
from equi_rl.nets.symmetry import GROUP_NAMES, SymmetryError

_SHOWN_STEPS = (0, 1, 4, 9, 24, 49)
_TABLE_WIDTH = 120


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parsed = _parser().parse_args(arguments)
    # A narrow terminal breaks the lines of a table; a narrow table would cut off the exponents.
    console = Console(markup=False, highlight=False, width=max(Console().width, _TABLE_WIDTH))
    from equi_rl.audit.task import AuditError
    from equi_rl.nets.checkpoint import CheckpointError

    try:
        parsed.run(parsed, console)
    except (ArchitectureError, AuditError, CheckpointError, SymmetryError) as error:
        Console(stderr=True).print(f"equi-audit: {error}", markup=False, style="red")
        return 2
    return 0


def _network(parsed: argparse.Namespace, console: Console) -> None:
    from equi_rl.nets.agent import build_agent
    from equi_rl.nets.checkpoint import load_checkpoint
    from equi_rl.nets.networks import Critic

    critic: Critic | None
    if parsed.checkpoint is not None:
        stored = load_checkpoint(parsed.checkpoint)
        actor = stored.build_actor()
        critic = stored.build_critic() if stored.critic is not None else None
        title = f"{parsed.checkpoint}, group {actor.config.group}"
    else:
        torch.manual_seed(parsed.seed)
        actor, critic = build_agent(parsed.agent, reference_config(parsed.group))
        title = f"fresh {parsed.agent} network, group {parsed.group}"
    options = {"steps": parsed.steps, "episodes": parsed.episodes, "seed": parsed.seed}
    tables = [
        ("mean of the action", actor_errors(actor, **options)),
        ("log-std of the action", actor_errors(actor, **options, output="log_std")),
    ]
    if critic is not None:
        tables.append(("value", critic_errors(critic, **options)))
    for name, errors in tables:
        console.print(_error_table(f"{title}: {name}", errors))


def _option(text: str) -> tuple[str, int]:
    from equi_rl.audit.task import AuditError

    name, _, value = text.partition("=")
    if not name.isidentifier() or not value.lstrip("-").isdigit():
        raise AuditError(f"--option {text!r}: write NAME=NUMBER, e.g. offset=2")
    return name, int(value)


def _error_table(title: str, errors: list[ElementError]) -> Table:
    shown = [step for step in _SHOWN_STEPS if step < len(errors[0].per_step)]
    table = Table(title=f"{title} (largest output {errors[0].scale:.2g})")
    table.add_column("element")
    table.add_column("pixels")
    for step in shown:
        table.add_column(f"step {step}", justify="right")
    table.add_column("largest", justify="right")
    for error in errors:
        table.add_row(
            str(error.element),
            "exact" if error.exact_on_pixels else "interpolated",
            *(f"{error.per_step[step]:.1e}" for step in shown),
            f"{error.largest:.1e}",
        )
    return table


def _environment(parsed: argparse.Namespace, console: Console) -> None:
    from equi_rl.audit.environment import audit_environment
    from equi_rl.audit.task import audit_task
    from equi_rl.carflag.audit import ADAPTERS

    options = dict(_option(text) for text in parsed.option)
    task = audit_task(parsed.env_id, parsed.group, ADAPTERS, **options)
    elements = task.group.order - 1
    with Progress(transient=True, console=Console(stderr=True)) as progress:
        bar = progress.add_task("rollouts", total=elements * parsed.episodes)
        audits = audit_environment(
            task,
            parsed.episodes,
            parsed.steps,
            parsed.starts,
            parsed.seed,
            lambda: progress.advance(bar),
        )
    table = Table(
        title=f"{parsed.env_id} under {parsed.group}: {parsed.episodes} rollouts of at most"
        f" {parsed.steps} random actions"
    )
    for column in ("element", "condition", "quantity", "median", "mean", "largest"):
        table.add_column(column, justify="right" if column in _NUMBERS else "left")
    for audit in audits:
        name = str(audit.element)
        for quantity, found in audit.transition.items():
            table.add_row(name, "transition", quantity, *_three(found))
        table.add_row(name, "reward", "reward", *_three(audit.reward))
        share = f"{audit.endings_differ} of {audit.steps} steps"
        table.add_row(name, "reward", "only one twin ended", "", "", share)
        table.add_row(name, "observation", "mean over pixels", *_three(audit.observation))
        table.add_row(name, "observation", "worst pixel", *_three(audit.observation_largest))
        verdict = f"p = {audit.belief_p_value:.3f}"
        table.add_row(
            name,
            "initial belief",
            f"energy distance, 2 x {audit.starts} starts",
            "",
            f"{audit.belief_distance:.4f}",
            verdict,
            end_section=True,
        )
    console.print(table)
    console.print(
        "0 is perfect symmetry. A small p (below 0.01) means that initial scenes are not drawn"
        " symmetrically; a large p means that these samples do not show it."
    )


_NUMBERS = ("median", "mean", "largest")


def _three(found: Differences) -> tuple[str, str, str]:
    return f"{found.median:.2g}", f"{found.mean:.2g}", f"{found.largest:.2g}"


def _training(parsed: argparse.Namespace, console: Console) -> None:
    from equi_rl.audit.networks import training_table

    rows = training_table(reference_config(parsed.group), parsed.updates, parsed.agent, parsed.seed)
    lines = [
        "| network | output | exact on pixels, before | after | interpolated, before | after"
        " | largest output |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        other = [
            "-" if value is None else f"{value:.1e}"
            for value in (row.other_before, row.other_after)
        ]
        lines.append(
            f"| {row.variant} | {row.output} | {row.exact_before:.1e} | {row.exact_after:.1e}"
            f" | {other[0]} | {other[1]} | {row.scale:.2g} |"
        )
    console.print("\n".join(lines), soft_wrap=True)


def _params(parsed: argparse.Namespace, console: Console) -> None:
    from equi_rl.audit.networks import parameter_table
    from equi_rl.carflag.audit import parameter_rows

    lines = ["| variant | actor | critic | encoder | LSTM |", "|---|---|---|---|---|"]
    for row in parameter_table() + parameter_rows():
        critic = f"{row.critic:,}" if row.critic else "shared"
        lines.append(
            f"| {row.variant} | {row.actor:,} | {critic} | {row.encoder:,} | {row.lstm:,} |"
        )
    console.print("\n".join(lines), soft_wrap=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="equi-audit",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    agents = [item.value for item in Combination]

    network = commands.add_parser("network", help="equivariance error per element and time step")
    network.add_argument("--group", default="C4", choices=GROUP_CHOICES, help="fresh network only")
    network.add_argument("--agent", default="equivariant", choices=agents, help="fresh only")
    network.add_argument("--checkpoint", type=Path, help="checkpoint folder")
    network.add_argument("--steps", type=int, default=50)
    network.add_argument("--episodes", type=int, default=2)
    network.add_argument("--seed", type=int, default=0)
    network.set_defaults(run=_network)

    environment = commands.add_parser("environment", help="the four conditions of Definition 1")
    environment.add_argument("env_id", help="gymnasium id, e.g. equi/BlockPicking-v0")
    environment.add_argument("--group", default="C4", choices=GROUP_NAMES)
    environment.add_argument("--episodes", type=int, default=20)
    environment.add_argument("--steps", type=int, default=10, help="actions per rollout")
    environment.add_argument("--starts", type=int, default=300, help="for the initial belief")
    environment.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="whole number for the environment's constructor, e.g. offset=2; may be repeated",
    )
    environment.add_argument("--seed", type=int, default=0)
    environment.set_defaults(run=_environment)

    training = commands.add_parser("training", help="errors before and after real updates")
    training.add_argument("--group", default="C4", choices=GROUP_CHOICES)
    training.add_argument("--agent", default="equivariant", choices=agents)
    training.add_argument("--updates", type=int, default=100)
    training.add_argument("--seed", type=int, default=0)
    training.set_defaults(run=_training)

    params = commands.add_parser("params", help="parameter counts of every variant, as Markdown")
    params.set_defaults(run=_params)
    return parser


if __name__ == "__main__":
    sys.exit(main())
