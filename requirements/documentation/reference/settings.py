# SPDX-License-Identifier: MIT
"""Fields of files that people write or read: calibration block of a cell file, policy contract."""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

from equi_core.setting_fields import setting_infos

# Fields that the reader of the file fills in, and nobody writes.
_NOT_WRITTEN = (("CellFile", "path"), ("CellFile", "blocks"))


def setting_tables() -> list[dict[str, Any]]:
    """Every dataclass that is filled from a file, with its fields."""
    from equi_calibration import cell_file
    from equi_core.cell_file import CellFile
    from equi_core.contract import PolicyContract

    found: list[dict[str, Any]] = []
    _walk(CellFile, "cell file, block cell", "", found)
    _walk(PolicyContract, "contract.json", "", found)
    _walk(cell_file.CellSettings, "cell file, block equi_calibrate", "", found)
    return found


def _walk(kind: Any, file: str, prefix: str, found: list[dict[str, Any]]) -> None:
    """A dataclass and, below it, those that its fields hold."""
    infos = setting_infos(kind)
    hints = typing.get_type_hints(kind)
    rows, below = [], []
    for spec in dataclasses.fields(kind):
        if (kind.__name__, spec.name) in _NOT_WRITTEN:
            continue
        inner = _dataclass_in(hints[spec.name])
        if inner is not None:
            below.append((inner, f"{prefix}{spec.name}."))
        rows.append(
            {
                "name": prefix + spec.name,
                "type": _type_name(hints[spec.name]),
                "default": _default(spec),
                "text": infos[spec.name].description,
            }
        )
    text = " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split())
    found.append({"file": file, "class": kind.__qualname__, "text": text, "fields": rows})
    for inner, name in below:
        _walk(inner, file, name, found)


def _dataclass_in(hint: Any) -> Any:
    """The dataclass that a type is or holds; None without one."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint
    for argument in typing.get_args(hint):
        inner = _dataclass_in(argument)
        if inner is not None:
            return inner
    return None


def _type_name(hint: Any) -> str:
    if isinstance(hint, type) and not typing.get_args(hint):
        return hint.__name__
    return str(hint).replace("typing.", "").replace("NoneType", "None").split(".")[-1].rstrip("'>")


def _default(spec: dataclasses.Field[Any]) -> str:
    if spec.default is not dataclasses.MISSING:
        return "" if spec.default is None else str(getattr(spec.default, "value", spec.default))
    if spec.default_factory is not dataclasses.MISSING:
        return ""
    return "required"
