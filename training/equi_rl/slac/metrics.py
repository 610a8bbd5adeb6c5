# SPDX-License-Identifier: MIT
"""Names of what a SLAC run logs; the page `slac.md` explains those that only SLAC has."""

from __future__ import annotations

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
