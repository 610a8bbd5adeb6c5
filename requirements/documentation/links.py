# SPDX-License-Identifier: MIT
"""Finds links of pages that lead nowhere: missing files, headings and images."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from .markdown import IMAGE_OR_LINK, anchors, lines_with_fences


def broken_links(
    root: Path, pages: Iterable[str], exists: Callable[[str], bool] = lambda _: False
) -> Iterator[str]:
    """Every link that leads nowhere, as `page:line: what`.

    Args:
        root: the repository.
        pages: its pages, relative to it.
        exists: whether a path that is no file will be generated.
    """
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        for number, (line, fenced) in enumerate(lines_with_fences(text), start=1):
            if fenced:
                continue
            for match in IMAGE_OR_LINK.finditer(re.sub(r"`[^`]*`", "", line)):
                fault = _fault(root, page, match["target"], exists)
                if fault:
                    yield f"{page}:{number}: {match['target']}: {fault}"


def _fault(root: Path, page: str, link: str, exists: Callable[[str], bool]) -> str:
    if re.match(r"(https?|mailto):", link):
        return ""
    path, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if target.startswith(".."):
        return "leads out of the repository"
    if exists(target):
        return ""
    if not (root / target).exists():
        return "no such file"
    if anchor and target.endswith(".md") and anchor not in _anchors_of(root / target):
        return f"no heading #{anchor} in {target}"
    return ""


@lru_cache
def _anchors_of(path: Path) -> frozenset[str]:
    return frozenset(anchors(path.read_text(encoding="utf-8")))
