# SPDX-License-Identifier: MIT
"""What the pages say of the policies' memory is what lies beside the policies."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "training" / "docs" / "policies.md"
TASKS = ("block_picking", "block_pulling", "block_pushing", "drawer_opening")


def stored(task: str) -> dict[str, float]:
    """AUC by moment."""
    probe = json.loads((ROOT / "models" / task / "probe.json").read_text(encoding="utf-8"))
    return {line["moment"]: line["auc"] for line in probe["results"]}


def shown() -> dict[str, dict[str, str]]:
    """The page's table: task -> moment -> figure."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    begin = next(index for index, line in enumerate(lines) if line.startswith("| AUC |"))
    moments = [cell.strip() for cell in lines[begin].strip("|").split("|")][1:]
    rows = {}
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        task, *figures = (cell.strip() for cell in line.strip("|").split("|"))
        rows[task] = dict(zip(moments, figures, strict=True))
    return rows


@pytest.mark.parametrize("task", TASKS)
def test_the_table_of_the_page_is_that_of_the_probe(task: str) -> None:
    probe = stored(task)
    assert shown()[task] == {moment: f"{probe[moment]:.3f}" for moment in shown()[task]}


@pytest.mark.parametrize("task", TASKS)
def test_nothing_leaks_and_what_was_touched_is_remembered(task: str) -> None:
    probe = stored(task)
    assert probe["before contact"] <= 0.55
    assert probe["contact + 2"] >= 0.97


def test_the_readme_tells_the_worst_and_the_best_of_them() -> None:
    after = [stored(task)["contact + 2"] for task in TASKS]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"AUC ([\d.]+) before.*?([\d.]+) to ([\d.]+) two steps after", text)
    assert found is not None
    before = max(stored(task)["before contact"] for task in TASKS)
    assert found.groups() == (f"{before:.3f}", f"{min(after):.3f}", f"{max(after):.3f}")
