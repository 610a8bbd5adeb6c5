# SPDX-License-Identifier: MIT
"""Stable codes that the programs print, with the texts they print and what to do about each.

The texts come out of the sources: every call that hands over a code together with a sentence. What
to do is what the program itself advises; where it advises nothing, it stands here, once.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..pages import ROOT
from .remedies import REMEDIES

SOURCES = ROOT / "ros2_ws/src"
_SEARCHED = ("equi_core", "equi_ros", "equi_perception", "equi_policy", "equi_control")


@dataclass(frozen=True)
class Code:
    """One code of an enumeration."""

    group: str
    name: str
    """As published, such as cloud_stale."""
    texts: tuple[str, ...]
    """What is printed with it; `...` stands for values."""
    meaning: str
    remedy: str


def fault_codes() -> list[Code]:
    """Codes of FaultCode.msg with the driver's own texts and advice."""
    from equi_control.driver import state

    rows = _constants(SOURCES / "equi_interfaces/msg/FaultCode.msg")
    texts = printed_texts("FaultCode")
    advice = {code: text for code, text in state._ACTION.items()}
    found = []
    for name, (_, comment) in rows.items():
        if name == "NONE":
            continue
        code = state.FaultCode[name]
        actions = [advice[code]] if code in advice else []
        for problem, fault in state._CODE_OF_PROBLEM.items():
            if fault is code:
                actions.append(state.fault_of_problem(problem, "").operator_action)
        more = REMEDIES["FaultCode"].get(name, "")
        remedy = "; ".join(dict.fromkeys([*actions, *([more] if more else [])]))
        found.append(
            Code("FaultCode", f"{name} ({int(code)})", texts.get(name, ()), comment, remedy)
        )
    return found


def listed_codes(group: str, module: str) -> list[Code]:
    """Codes of an enumeration of strings, with texts and remedies."""
    path = SOURCES / f"{module.partition('.')[0]}/{module.replace('.', '/')}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (kind,) = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == group]
    texts = printed_texts(group)
    found = []
    for node in kind.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            member = node.targets[0]
            assert isinstance(member, ast.Name)
            value = str(node.value.value)
            meaning, remedy = REMEDIES[group].get(value, ("", "")) or ("", "")
            found.append(Code(group, value, texts.get(member.id, ()), meaning, remedy))
    return found


def printed_texts(group: str) -> dict[str, tuple[str, ...]]:
    """Texts that the sources print with each member of an enumeration."""
    found: dict[str, dict[str, None]] = {}
    for package in _SEARCHED:
        for path in sorted((SOURCES / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if f"{group}." not in text or path.name == "messages.py":
                continue
            for member, words in _handed_over(ast.parse(text), group):
                found.setdefault(member, {})[words] = None
    return {member: tuple(words) for member, words in found.items()}


def _handed_over(tree: ast.AST, group: str) -> Iterator[tuple[str, str]]:
    """Members of an enumeration in the arguments of a call, each with the sentence beside it."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Call, ast.Tuple)):
            continue
        parts = node.args if isinstance(node, ast.Call) else node.elts
        members = [
            part.attr
            for part in parts
            if isinstance(part, ast.Attribute)
            and isinstance(part.value, ast.Name)
            and part.value.id == group
        ]
        words = [text for part in parts for text in _texts_of(part) if " " in text]
        if len(members) == 1 and words:
            yield members[0], " ".join("; must be ".join(words).split())


def _texts_of(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        parts = [
            str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values
        ]
        yield "".join(parts)


def _constants(path: Path) -> dict[str, tuple[int, str]]:
    """Constants of a message file: value and comment by name."""
    pattern = re.compile(
        r"^\w+ (?P<name>[A-Z_]+) *= *(?P<value>\d+) *(?:# *(?P<comment>.*))?$", re.M
    )
    return {
        match["name"]: (int(match["value"]), match["comment"] or "")
        for match in pattern.finditer(path.read_text(encoding="utf-8"))
    }
