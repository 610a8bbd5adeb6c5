# SPDX-License-Identifier: MIT
"""What a settings dataclass says about its fields: text below it, unit of the name, range."""

from __future__ import annotations

from dataclasses import dataclass

from equi_core.setting_fields import out_of_range, setting, setting_infos


@dataclass(frozen=True)
class Base:
    width_m: float = 0.1
    """How wide it may be."""


@dataclass(frozen=True)
class Derived(Base):
    height_m: float = setting(0.2, low=0.0, high=1.0)
    """How high it may be,
    measured from the table."""
    retries: int = setting(3, "how often it is tried", low=1)
    max_speed_m_s: float = 0.25
    force: float = 5.0
    """Contact force [N]."""


def test_the_string_below_a_field_is_its_description_with_the_unit_of_its_name() -> None:
    infos = setting_infos(Derived)
    assert infos["height_m"].description == "How high it may be, measured from the table. [m]"
    assert infos["width_m"].description == "How wide it may be. [m]"  # inherited
    assert infos["force"].description == "Contact force [N]."  # it has said so itself


def test_a_field_without_words_is_described_by_its_name() -> None:
    assert setting_infos(Derived)["max_speed_m_s"].description == "max speed [m/s]"


def test_ranges_are_kept_and_defaults_stay_defaults() -> None:
    infos = setting_infos(Derived)
    assert (infos["height_m"].low, infos["height_m"].high) == (0.0, 1.0)
    assert (infos["retries"].low, infos["retries"].high) == (1, None)
    assert infos["retries"].description == "how often it is tried"
    assert Derived().height_m == 0.2
    assert list(infos) == ["width_m", "height_m", "retries", "max_speed_m_s", "force"]


def test_a_value_outside_its_range_is_named_with_what_is_allowed() -> None:
    assert out_of_range(Derived()) == ""
    assert out_of_range(Derived(height_m=2.0)) == "height_m is 2.0; it must lie between 0 and 1"
    assert out_of_range(Derived(height_m=float("nan"))).startswith("height_m is nan")
    assert out_of_range(Derived(retries=0)) == "retries is 0; it must lie between 1 and inf"
