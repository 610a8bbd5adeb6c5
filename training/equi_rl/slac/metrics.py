# SPDX-License-Identifier: MIT
"""Names of what a SLAC run logs; the page `slac.md` explains those that only SLAC has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equi_rl.training.metrics import COUNTS

LATENT_METRICS = (
    "elbo",
    "kl",
    "reconstruction_loss",
    "holding_loss",
    "reward_loss",
    "termination_loss",
    "latent_gradient_norm",
)
"""Of the latent model; losses in nats per frame."""
_SHARED_METRICS = (
    *("success", "training_success", "clipped_requests"),
    *("critic_loss", "actor_loss", "value", "entropy", "temperature"),
)
METRICS = (*_SHARED_METRICS, *LATENT_METRICS)
COLUMNS = (*COUNTS, *METRICS)
_MISSING = "nan"


def log_scalars(writer: Any, metrics: Mapping[str, float], environment_steps: int) -> None:
    """Write metrics to TensorBoard."""
    for name in METRICS:
        if name in metrics:
            writer.add_scalar(name, metrics[name], environment_steps)


def progress_row(counts: Mapping[str, Any], metrics: Mapping[str, float]) -> dict[str, Any]:
    """A row of `progress.csv`, every column of it; what is not known is `nan`."""
    known = {**{name: f"{value:.6g}" for name, value in metrics.items()}, **counts}
    return {name: known.get(name, _MISSING) for name in COLUMNS}
