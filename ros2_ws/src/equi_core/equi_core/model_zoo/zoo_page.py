# SPDX-License-Identifier: MIT
"""The table of `models/README.md`, written from the model folders."""

from __future__ import annotations

from collections.abc import Iterable

from equi_core.model_zoo.model_folder import Model
from equi_core.statistics import SuccessRate


def zoo_table(models: Iterable[Model]) -> str:
    """One row per model, as Markdown."""
    lines = [
        "| model | success on unseen scenes | group | agent, preset | steps | weights |",
        "|---|---|---|---|---|---|",
    ]
    for model in sorted(models, key=lambda item: item.name):
        origin = model.contract.provenance
        lines.append(
            f"| [{model.name}]({model.name}/MODEL_CARD.md) | {percent(model.success())} "
            f"| {model.contract.group} | {origin.agent}, {origin.preset} "
            f"| {origin.environment_steps:,} | {model.weights_bytes / 1e6:.2f} MB |"
        )
    return "\n".join(lines) + "\n"


def percent(rate: SuccessRate | None) -> str:
    """`0.975 (195/200, 95 % 0.943 to 0.989)`, or that nobody has measured it."""
    return "not measured" if rate is None else str(rate)
