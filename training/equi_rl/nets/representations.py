# SPDX-License-Identifier: MIT
"""Layouts as a configuration writes them: `trivial:1,sign:1` says how each channel transforms.

`trivial` channels stay, `sign` channels change sign under the flip of a line, `vector` channels are
pairs (x, y) that rotate with the plane.
"""

from __future__ import annotations

import numpy as np

from equi_rl.nets.symmetry import Element, Group, Layout, SymmetryError

KINDS = ("trivial", "sign", "vector")


def layout_named(text: str) -> Layout:
    """The layout that a text such as `trivial:1,sign:2` describes; raises SymmetryError."""
    parts = []
    for part in text.split(","):
        kind, _, count = part.strip().partition(":")
        if kind not in KINDS or not count.isdecimal() or int(count) < 1:
            raise SymmetryError(
                f"layout = {text!r}: {part.strip()!r} is not valid; write kind:channels with"
                f" a kind of {', '.join(KINDS)}, for example 'trivial:1,sign:2'"
            )
        if kind == "vector" and int(count) % 2:
            raise SymmetryError(f"layout = {text!r}: vector channels are pairs (x, y)")
        parts.append((kind, int(count)))
    return Layout(tuple(parts))


def layout_matrix(group: Group, g: Element, layout: Layout) -> np.ndarray:
    """(C, C) matrix by which ``g`` acts on the channels of a layout of these kinds."""
    matrix = np.eye(layout.channels)
    start = 0
    for kind, count in layout.parts:
        block = slice(start, start + count)
        if kind == "sign":
            if not group.on_line:
                raise SymmetryError(f"sign channels need the group 'flip', not {group.name}")
            matrix[block, block] *= -1.0 if g.mirror else 1.0
        elif kind == "vector":
            if group.on_line:
                raise SymmetryError("vector channels need a planar group, not 'flip'")
            matrix[block, block] = np.kron(np.eye(count // 2), group.plane_matrix(g))
        elif kind != "trivial":
            raise SymmetryError(f"{kind} channels have no matrix here; known: {', '.join(KINDS)}")
        start += count
    return matrix


def spread_rows(layout: Layout) -> list[int]:
    """Which standard deviation each component of an action has: the pair of a vector shares one."""
    rows: list[int] = []
    for kind, count in layout.parts:
        for channel in range(count):
            second_of_pair = kind == "vector" and channel % 2
            rows.append(rows[-1] if second_of_pair else len(set(rows)))
    return rows
