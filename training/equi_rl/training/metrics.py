# SPDX-License-Identifier: MIT
"""Names of everything that a run logs; the page `metrics.md` explains each of them.

TensorBoard has the metrics over environment steps, once per round; `progress.csv` has them beside
the counts, once per evaluation. A name that is not listed here cannot be logged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

COUNTS = (
    "rounds",
    "updates",
    "environment_steps",
    "seconds",
    "successes",
    "episodes",
    "mean_length",
)
"""Columns of `progress.csv` that only an evaluation has."""

METRICS = (
    # how well it does
    "success",
    "training_success",
    "clipped_requests",
    # imitation
    "imitation_loss",
    "gradient_norm",
    "learning_rate",
    # critic
    "critic_loss",
    "critic_gradient_norm",
    "value",
    "q_demonstrations",
    "q_successes",
    "q_failures",
    "q_demonstration_advantage",
    "q_return_rank_correlation",
    # actor
    "actor_loss",
    "actor_gradient_norm",
    "entropy",
    "temperature",
    "saturated_actions",
    "improvement_temperature",
    "improvement_kl",
    "improvement_gain",
    "demonstration_loss",
)
"""Scalars of TensorBoard and further columns of `progress.csv`."""

COLUMNS = (*COUNTS, *METRICS)
_MISSING = "nan"


def log_scalars(
    writer: Any,
    metrics: Mapping[str, float],
    environment_steps: int,
    allowed: Sequence[str] = METRICS,
) -> None:
    """Write metrics to TensorBoard; ``allowed`` are the learner's METRICS."""
    for name, value in metrics.items():
        if name not in allowed:
            raise ValueError(
                f"metric '{name}' is not in this learner's METRICS; add it there and explain it on"
                " the page of its metrics"
            )
        writer.add_scalar(name, value, environment_steps)


def progress_row(
    counts: Mapping[str, Any], metrics: Mapping[str, float], columns: Sequence[str] = COLUMNS
) -> dict[str, Any]:
    """A row of `progress.csv`, every column of it; what is not known is `nan`."""
    numbers = {name: f"{value:.6g}" for name, value in metrics.items()}
    known = {**numbers, **counts}
    return {name: known.get(name, _MISSING) for name in columns}
