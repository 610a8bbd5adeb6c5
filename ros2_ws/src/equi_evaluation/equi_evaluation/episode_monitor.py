# SPDX-License-Identifier: MIT
"""Monitors an episode: the referee's label and the latencies that nodes report.

Together with how the episode ended they make its result.
"""

from __future__ import annotations

import contextlib
from typing import Any

from equi_core.files.plain_data import PlainDataError, parse_json
from equi_evaluation.protocol import FirstTry
from equi_evaluation.results import EpisodeResult

INVALID_OUTCOMES = ("STOPPED", "REFUSED")
"""Outcomes that say nothing about the policy."""
_TIMED_NODES = ("policy", "depth_fusion")
_QUANTILES = ("p50", "p99")


class EpisodeMonitor:
    """Collects label and latencies while an episode runs."""

    def __init__(self, ground_truth: bool) -> None:
        """Nothing is known yet.

        Args:
            ground_truth: a referee says whether the task was done; otherwise the operator does.
        """
        self._ground_truth = ground_truth
        self._truth: dict[str, Any] = {}
        self._latencies_ms: dict[str, dict[str, float]] = {}

    def reset(self) -> None:
        """Begin an episode: drop the label of the one before; latencies stay until renewed."""
        self._truth = {}

    def on_referee(self, text: str) -> None:
        """The referee's newest label, as JSON; what is none is ignored."""
        try:
            truth = parse_json(text)
        except PlainDataError:
            return
        if isinstance(truth, dict):
            self._truth = truth

    def on_diagnostic(self, node: str, key: str, value: str) -> None:
        """One entry of a node's diagnostics; whatever is no latency is ignored."""
        if node not in _TIMED_NODES:
            return
        for quantile in _QUANTILES:
            ending = f" {quantile} [ms]"
            if key.endswith(ending):
                stage = f"{node}: {key[: -len(ending)].replace('_', ' ')}"
                with contextlib.suppress(ValueError):
                    self._latencies_ms.setdefault(stage, {})[quantile] = float(value)

    def result(
        self, episode_id: str, seed: int, outcome: str, reason: str, steps: int, duration_s: float
    ) -> EpisodeResult:
        """The episode's result; without a referee the label is still to be the operator's."""
        # The referee's last label may be of another episode, if this one reached it too late.
        truth = self._truth if self._truth.get("episode_id") == episode_id else {}
        success = outcome == "SUCCEEDED"
        if self._ground_truth:
            success = bool(truth.get("success", False))
        return EpisodeResult(
            episode_id=episode_id,
            seed=seed,
            outcome=outcome,
            reason=reason,
            success=success,
            label_source="ground_truth" if self._ground_truth else "operator",
            first_try=_first_try(truth.get("first_try")),
            steps=int(steps),
            duration_s=float(duration_s),
            invalid=outcome in INVALID_OUTCOMES,
            latencies_ms={stage: dict(values) for stage, values in self._latencies_ms.items()},
        )


def _first_try(word: object) -> str:
    """The referee's word, where it is one of those known."""
    known = {kind.value for kind in FirstTry}
    return str(word) if word in known else FirstTry.NONE.value
