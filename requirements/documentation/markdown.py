# SPDX-License-Identifier: MIT
"""Reading Markdown as GitHub does, and writing it as Python-Markdown wants it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

IMAGE_OR_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_FENCE = re.compile(r"^(?P<indent>\s*)(?P<marks>```+|~~~+)")
_ITEM = re.compile(r"^ *(?P<mark>(?:[-*+]|\d+\.) +)\S")
_HEADING = re.compile(r"^#{1,6}\s+(?P<text>.*?)\s*#*$")
_WIDTH = 4
"""Columns by which Python-Markdown wants the content of a list item indented."""


def lines_with_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Every line, and whether it belongs to a fenced block (its fences included)."""
    marks = ""
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if marks:
            yield line, True
            if fence and fence["marks"].startswith(marks) and line.strip() == fence["marks"]:
                marks = ""
        elif fence:
            marks = fence["marks"]
            yield line, True
        else:
            yield line, False


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` applied to what is in no fenced block."""
    parts: list[str] = []
    plain: list[str] = []
    for line, fenced in lines_with_fences(text):
        if not fenced:
            plain.append(line)
            continue
        if plain:
            parts.append(change("\n".join(plain)))
            plain = []
        parts.append(line)
    if plain:
        parts.append(change("\n".join(plain)))
    return "\n".join(parts) + "\n"


def with_list_breaks(text: str) -> str:
    """Lists as Python-Markdown reads them: a blank line before, content indented by fours."""
    result: list[str] = []
    contents: list[int] = []  # columns at which the content of the open items begins
    for line, fenced in lines_with_fences(text):
        stripped = line.lstrip(" ")
        if not stripped:
            result.append("")
            continue
        column = len(line) - len(stripped)
        after_blank = not result or not result[-1]
        item = None if fenced else _ITEM.match(line)
        if item or after_blank or fenced or stripped.startswith(("#", "|", "<")):
            while contents and column < contents[-1]:
                contents.pop()
        if item:
            if not contents and not after_blank and not _ITEM.match(result[-1]):
                result.append("")
            result.append(" " * _WIDTH * len(contents) + stripped)
            contents.append(column + len(item["mark"]))
        elif contents:
            beyond = max(0, column - contents[-1]) if fenced else 0
            result.append(" " * (_WIDTH * len(contents) + beyond) + stripped)
        else:
            result.append(line)
    return "\n".join(result) + "\n"


def anchors(text: str) -> set[str]:
    """Anchors of the headings, as GitHub names them."""
    found: dict[str, int] = {}
    names = set()
    for line, fenced in lines_with_fences(text):
        heading = None if fenced else _HEADING.match(line)
        if heading:
            slug = slug_of(heading["text"])
            count = found.get(slug, 0)
            found[slug] = count + 1
            names.add(slug if not count else f"{slug}-{count}")
    return names


def slug_of(heading: str) -> str:
    """`Nodes, and topics` -> `nodes-and-topics`."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
