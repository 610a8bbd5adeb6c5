# SPDX-License-Identifier: MIT
"""Specification of `equi-bench`: it runs what packages register and ends with one JSON line."""

from __future__ import annotations

import json
import sys

import pytest

from equi_core import bench


@pytest.fixture
def a_package_with_benchmarks(tmp_path, monkeypatch):
    """A distribution on the import path that registers one good and one failing benchmark."""
    (tmp_path / "made_up_package.py").write_text(
        "def good(options):\n"
        "    print('a table')\n"
        "    return {'options': options, 'rate_hz': 12.5}\n"
        "def bad(options):\n"
        "    raise RuntimeError('no such device')\n"
        "def not_a_number(options):\n"
        "    return {'rate_hz': float('nan')}\n"
    )
    info = tmp_path / "made_up_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[equi.benchmarks]\n"
        "made-up-good = made_up_package:good\n"
        "made-up-bad = made_up_package:bad\n"
        "made-up-nan = made_up_package:not_a_number\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("made_up_package", None)


@pytest.mark.usefixtures("a_package_with_benchmarks")
class TestWithARegisteredBenchmark:
    def test_it_is_listed(self, capsys):
        assert bench.main([]) == 0
        assert "made-up-good" in capsys.readouterr().out

    def test_options_are_passed_on_and_the_last_line_is_json(self, capsys):
        assert bench.main(["made-up-good", "--fast", "3"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "a table"
        assert json.loads(lines[-1]) == {"options": ["--fast", "3"], "rate_hz": 12.5}

    @pytest.mark.parametrize("name", ["made-up-bad", "made-up-nan"])
    def test_a_failing_benchmark_gives_a_non_zero_exit(self, name, capsys):
        assert bench.main([name]) == 1
        assert name in capsys.readouterr().err

    def test_a_misspelt_name_is_answered_with_the_near_one(self, capsys):
        assert bench.main(["made-up-goood"]) == 2
        assert "made-up-good" in capsys.readouterr().err
