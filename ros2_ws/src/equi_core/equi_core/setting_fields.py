# SPDX-License-Identifier: MIT
"""What a settings dataclass says about its fields: description, unit and range, written once.

The description of a field is the string below it, as everywhere in this project; `setting` adds a
range, or a description where there is no room for a string. Parameter descriptions of ROS nodes
come from here.

    @dataclass(frozen=True)
    class Limits:
        max_age_s: float = setting(0.4, low=0.0, high=10.0)
        \"\"\"An older cloud is not used [s].\"\"\"
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

_KEY = "equi_setting"
_UNITS = {
    "_m": "m",
    "_mm": "mm",
    "_s": "s",
    "_hz": "Hz",
    "_rad": "rad",
    "_deg": "deg",
    "_px": "px",
    "_n": "N",
    "_kg": "kg",
    "_m_s": "m/s",
    "_m_s2": "m/s^2",
    "_m_s3": "m/s^3",
    "_rad_s": "rad/s",
    "_rad_s2": "rad/s^2",
    "_rad_s3": "rad/s^3",
}


@dataclass(frozen=True)
class SettingInfo:
    """What is known about one setting."""

    description: str
    low: float | None = None
    """Smallest allowed value; None: no limit stated."""
    high: float | None = None


def setting(
    default: Any, description: str = "", *, low: float | None = None, high: float | None = None
) -> Any:
    """A dataclass field with a default, and a description or a range."""
    info = SettingInfo(description, low, high)
    return dataclasses.field(default=default, metadata={_KEY: info})


def setting_infos(kind: type) -> Mapping[str, SettingInfo]:
    """Every field of a dataclass by name, with its description; inherited ones too."""
    if kind not in _KNOWN:
        _KNOWN[kind] = MappingProxyType(_read_infos(kind))
    return _KNOWN[kind]


_KNOWN: dict[type, Mapping[str, SettingInfo]] = {}


def _read_infos(kind: Any) -> dict[str, SettingInfo]:
    texts: dict[str, str] = {}
    for owner in reversed(kind.__mro__):
        texts |= _field_docstrings(owner) if dataclasses.is_dataclass(owner) else {}
    found = {}
    for spec in dataclasses.fields(kind):
        given = spec.metadata.get(_KEY, SettingInfo(""))
        words = given.description or texts.get(spec.name) or _words_of(spec.name)
        found[spec.name] = dataclasses.replace(given, description=_with_unit(words, spec.name))
    return found


def out_of_range(settings: Any) -> str:
    """The first field of a dataclass instance outside its range, in words; empty if none is."""
    for name, info in setting_infos(type(settings)).items():
        value = getattr(settings, name)
        low = -math.inf if info.low is None else info.low
        high = math.inf if info.high is None else info.high
        if (info.low, info.high) != (None, None) and not low <= value <= high:
            return f"{name} is {value}; it must lie between {low:g} and {high:g}"
    return ""


def _with_unit(description: str, name: str) -> str:
    """The description, with the unit that the name states if it does not say it."""
    if "[" in description:
        return description
    suffix = _unit_suffix(name)
    return f"{description} [{_UNITS[suffix]}]" if suffix else description


def _words_of(name: str) -> str:
    return name.removesuffix(_unit_suffix(name)).replace("_", " ")


def _unit_suffix(name: str) -> str:
    return max((end for end in _UNITS if name.endswith(end)), key=len, default="")


def _field_docstrings(owner: Any) -> dict[str, str]:
    """The string below each field in the source of a class; none where there is no source."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    if not isinstance(body, ast.ClassDef):
        return {}
    texts = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
            and isinstance(below.value.value, str)
        ):
            texts[field.target.id] = " ".join(below.value.value.split())
    return texts
