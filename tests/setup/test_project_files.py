# SPDX-License-Identifier: MIT
"""The files around the code: one version everywhere, citation, hooks, workflow, file ends."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from architecture import file_ends, licence_lines, sizes

ROOT = Path(__file__).resolve().parents[2]
VERSION = (ROOT / "VERSION").read_text().strip()
PACKAGE_FOLDERS = [
    *sorted((ROOT / "ros2_ws/src").iterdir()),
    *(ROOT / name for name in ("training", "calibration", "models")),
]
MANIFESTS = sorted(
    [
        *(path for folder in PACKAGE_FOLDERS for path in folder.glob("package.xml")),
        *(path for folder in PACKAGE_FOLDERS for path in folder.glob("setup.py")),
        ROOT / "ros2_ws/pip_ros2/pyproject.toml",
        ROOT / "CITATION.cff",
    ]
)


def tracked_files(*patterns: str) -> list[Path]:
    """Files of the repository; skips where there is no git, as in an archive."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *patterns]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_package_has_the_one_version(path: Path) -> None:
    found = re.findall(
        r'(?:<version>|^\s*version(?:=|\s=\s|: )"?)([\d.]+)', path.read_text(), flags=re.MULTILINE
    )
    assert found == [VERSION]


def test_the_changelog_tells_about_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[{re.escape(VERSION)}\] - ", text, flags=re.MULTILINE)


def test_the_citation_names_the_paper_and_no_invented_person() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["authors"] == [{"name": "The equi-rl-ur5 authors"}]
    assert "The equi-rl-ur5 authors" in (ROOT / "LICENSE").read_text()
    (paper,) = citation["references"]
    assert paper["title"] == "Equivariant Reinforcement Learning under Partial Observability"
    names = [author["family-names"] for author in paper["authors"]]
    assert names == ["Nguyen", "Baisero", "Klee", "Wang", "Platt", "Amato"]


def test_hooks_and_workflow_run_commands_that_exist() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = [
        *(hook["entry"] for hook in hooks),
        *(step.get("run", "") for step in steps),
        (ROOT / ".ci/run").read_text(),
    ]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    wanted = {name for text in commands for name in re.findall(r"\bmake ([a-z-]+)$", text, re.M)}
    assert {"check", "test", "types"} <= wanted <= targets
    for script in re.findall(r"requirements/\S+\.py", "\n".join(commands)):
        assert (ROOT / script).is_file()


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_what_a_page_names_exists(name: str) -> None:
    text = (ROOT / name).read_text()
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    paths = re.findall(r"`((?:tests|requirements|training|ros2_ws)/[\w./-]+)`", text)
    missing = [path for path in [*links, *paths] if not (ROOT / path).exists()]
    assert missing == []


def test_every_law_has_its_number_and_what_holds_it() -> None:
    rows = re.findall(
        r"^\| (\d+) \| \*\*(.+?)\*\*.*\| (.+) \|$", (ROOT / "ARCHITECTURE.md").read_text(), re.M
    )
    assert [int(number) for number, _, _ in rows] == list(range(1, 12))
    assert all("tests/" in holder or "no test of its own yet" in holder for _, _, holder in rows)


def test_every_python_file_begins_with_its_licence() -> None:
    files = tracked_files("*.py")
    assert len(files) > 500
    assert [str(path) for path in files if not licence_lines.has_line(path)] == []


def test_sizes_are_counted_as_a_reader_would(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    for name, lines in {"a.py": 10, "b.py": 30, "room/c.py": 20, "room/__init__.py": 99}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x = 1\n" * lines)
    size = sizes.measure("package", folder)
    assert (size.modules, size.lines, size.median, size.largest) == (3, 60, 20, 30)
    assert (size.largest_module, size.fullest_folder) == ("b.py", "package")
    assert size.modules_in_fullest == 2


def test_ends_of_lines_and_files_are_repaired() -> None:
    assert file_ends.repaired("a  \nb\t\n\n\n", keep_trailing_blanks=False) == "a\nb\n"
    assert file_ends.repaired("a  \nb", keep_trailing_blanks=True) == "a  \nb\n"
    assert file_ends.repaired("\n", keep_trailing_blanks=False) == ""


def test_the_licence_line_goes_first_but_after_an_interpreter_line(tmp_path: Path) -> None:
    plain, script, empty = (tmp_path / name for name in ("plain.py", "script.py", "empty.py"))
    plain.write_text('"""Text."""\n')
    script.write_text("#!/usr/bin/env python3\nimport sys\n")
    empty.write_text("")
    assert licence_lines.main([str(plain), str(script), str(empty)]) == 1
    assert plain.read_text() == f'{licence_lines.LINE}"""Text."""\n'
    assert script.read_text() == f"#!/usr/bin/env python3\n{licence_lines.LINE}import sys\n"
    assert empty.read_text() == ""
    assert licence_lines.main([str(plain), str(script), str(empty)]) == 0
