# SPDX-License-Identifier: MIT
"""Specification of the strict reader: what it builds, and what it says when it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from equi_core.strict_fields import FieldError, plain_fields, read_fields


class TooSmallError(ValueError):
    """A check of the dataclass's own."""


@dataclass(frozen=True)
class Lens:
    focal_px: float
    centre_px: tuple[float, float]

    def __post_init__(self) -> None:
        if self.focal_px <= 0:
            raise TooSmallError(f"focal_px is {self.focal_px}; it must be positive")


@dataclass(frozen=True)
class Camera:
    name: str
    width_px: int
    mirrored: bool
    delay_s: float | None
    lenses: tuple[Lens, ...]
    tags: tuple[str, ...]
    options: Mapping[str, Any]


GOOD = {
    "name": "left",
    "width_px": 640,
    "mirrored": False,
    "delay_s": None,
    "lenses": [{"focal_px": 383, "centre_px": [319.5, 239]}],
    "tags": ["a"],
    "options": {"anything": [1]},
}
BUILT = Camera("left", 640, False, None, (Lens(383.0, (319.5, 239.0)),), ("a",), {"anything": [1]})


def test_plain_data_becomes_a_typed_object_and_back():
    camera = read_fields(Camera, GOOD)
    assert camera == BUILT
    assert isinstance(camera.lenses[0].focal_px, float)
    assert plain_fields(camera) == {
        **GOOD,
        "lenses": [{"focal_px": 383, "centre_px": [319.5, 239]}],
    }


def test_parts_that_are_built_already_are_taken_as_they_are():
    assert read_fields(Camera, {**GOOD, "lenses": BUILT.lenses}) == BUILT


@pytest.mark.parametrize(
    ("change", "name", "allowed"),
    [
        ({"surplus": 1}, "surplus", "known here: name"),
        ({"name": 3}, "name", "a string"),
        ({"width_px": 640.0}, "width_px", "a whole number"),
        ({"width_px": True}, "width_px", "a whole number"),
        ({"mirrored": 1}, "mirrored", "true or false"),
        ({"delay_s": "soon"}, "delay_s", "a finite number"),
        ({"delay_s": float("nan")}, "delay_s", "a finite number"),
        ({"lenses": {"focal_px": 1}}, "lenses", "a list of items"),
        ({"lenses": [3]}, "lenses[0]", "named fields"),
        ({"lenses": [{"focal_px": 1.0}]}, "lenses[0].centre_px", "missing"),
        ({"lenses": [{"focal_px": 1, "centre_px": [1]}]}, "lenses[0].centre_px", "2 numbers"),
        ({"tags": ["a", 2]}, "tags[1]", "a string"),
        ({"options": [1]}, "options", "named values"),
    ],
)
def test_a_wrong_field_is_refused_with_full_name_value_and_what_is_allowed(change, name, allowed):
    with pytest.raises(FieldError) as caught:
        read_fields(Camera, {**GOOD, **change})
    assert caught.value.name == name
    assert allowed in caught.value.problem


def test_a_file_that_holds_no_fields_is_refused():
    with pytest.raises(FieldError, match="named fields"):
        read_fields(Camera, [1, 2])


def test_a_check_of_the_dataclass_is_reported_under_its_full_name_if_asked_for():
    data = {**GOOD, "lenses": [{"focal_px": 0, "centre_px": [0, 0]}]}
    with pytest.raises(TooSmallError):
        read_fields(Camera, data)
    with pytest.raises(FieldError, match=r"'cell.lenses\[0\]' is refused: focal_px is 0"):
        read_fields(Camera, data, "cell", refused_by=TooSmallError)
