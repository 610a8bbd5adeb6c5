# SPDX-License-Identifier: MIT
"""The card of a probe: what it reads, how it was fitted, and its table."""

from __future__ import annotations

from pathlib import Path

from equi_core.belief.probe_file import CARD_FILE, StoredProbe
from equi_rl.data.atomic_file import write_atomically
from equi_rl.probe.fit import BEFORE

MOST_BEFORE = 0.55
LEAST_AFTER = 0.97
JUDGED_AFTER = "contact + 2"


def verdict(stored: StoredProbe) -> str:
    """Whether the goals are reached, in one sentence."""
    found = {result.moment: result.auc for result in stored.results}
    before, after = found.get(BEFORE), found.get(JUDGED_AFTER)
    if before is None or after is None:
        return "The goals were not measured: too few episodes reached contact."
    leak = "reached" if before <= MOST_BEFORE else "missed"
    memory = "reached" if after >= LEAST_AFTER else "missed"
    return (
        f"Goal before contact (at most {MOST_BEFORE}: nothing leaks): {leak} with {before:.3f}. "
        f"Goal two steps after contact (at least {LEAST_AFTER}): {memory} with {after:.3f}."
    )


def write_card(stored: StoredProbe, folder: Path) -> Path:
    """Write `PROBE_CARD.md` into the model folder."""
    rows = [
        f"| {result.moment} | {result.auc:.3f} | {result.samples} | {result.episodes} |"
        for result in stored.results
    ]
    probe = stored.probe
    fitted, tested = stored.fitted_seeds, stored.tested_seeds
    lines = [
        f"# Probe of {stored.task}",
        "",
        "What the policy believes: a linear probe on its LSTM state predicts which of the two "
        "objects is movable. It is not used for acting.",
        "",
        f"- Reads {' and '.join(stored.parts)} state, {stored.channels} channels each, regular "
        f"fields of {stored.group}; {probe.weights.size} weights. The score of a position "
        "rotates exactly with the scene.",
        f"- Belongs to contract `{stored.contract_sha256[:16]}`; refused beside any other model.",
        f"- Fitted on scenes {fitted[0]} to {fitted[1]}, tested on {tested[0]} to {tested[1]}, "
        "each played twice, once with each object movable. Neither policy nor probe was fitted "
        "to the test scenes.",
        "- `contact + n`: n steps after the first observation that follows a contact, or the last "
        "step of an episode that has ended by then. An AUC of 0.5 is chance.",
        "",
        "| moment | AUC | samples | episodes |",
        "|---|---|---|---|",
        *rows,
        "",
        verdict(stored),
        "",
        f"Made by `equi-probe models/{stored.task}`.",
        "",
    ]
    path = folder / CARD_FILE
    write_atomically(path, "\n".join(lines).encode())
    return path
