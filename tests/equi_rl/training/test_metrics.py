# SPDX-License-Identifier: MIT
"""Specification of what is logged: everything is explained, nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from equi_rl.training.metrics import COLUMNS, METRICS, log_scalars, progress_row

PAGE = Path(__file__).parents[3] / "training" / "docs" / "metrics.md"


class Writer:
    def __init__(self) -> None:
        self.written: dict[str, tuple[float, int]] = {}

    def add_scalar(self, name, value, step):
        self.written[name] = (value, step)


def test_every_logged_metric_is_explained_and_every_explained_one_is_logged():
    explained = re.findall(r"^\| `(\w+)` \| \S", PAGE.read_text(), flags=re.MULTILINE)
    assert len(explained) == len(set(explained))
    assert set(explained) == set(COLUMNS)


def test_a_metric_without_an_explanation_cannot_be_logged():
    writer = Writer()
    log_scalars(writer, {"entropy": 1.5}, 7)
    assert writer.written == {"entropy": (1.5, 7)}
    with pytest.raises(ValueError, match=r"metric 'hope' is not in .*METRICS; add it there"):
        log_scalars(writer, {"hope": 1.0}, 7)


def test_a_row_has_every_column_in_one_order_and_says_what_is_not_known():
    row = progress_row({"rounds": 3, "mean_length": 2.5}, {"entropy": 0.123456789})
    assert tuple(row) == COLUMNS
    assert (row["rounds"], row["mean_length"], row["entropy"]) == (3, 2.5, "0.123457")
    assert {row[name] for name in METRICS if name != "entropy"} == {"nan"}
