# SPDX-License-Identifier: MIT
"""The site holds every page, every link leads somewhere, and nothing comes from the network."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from documentation import links, pages
from documentation.markdown import IMAGE_OR_LINK, anchors, with_list_breaks

ROOT = pages.ROOT


def tracked_pages() -> list[str]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a git checkout")
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--", "*.md"]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\0")
    return [name for name in names if name and (ROOT / name).is_file()]


def test_every_page_of_the_repository_has_its_place_on_the_site():
    missing = [
        page
        for page in sorted({*tracked_pages()} - {*pages.source_pages()})
        if not any(fnmatch.fnmatchcase(page, pattern) for pattern in pages.NOT_ON_THE_SITE)
    ]
    assert missing == [], "name them in `nav` of mkdocs.yml"


def test_every_page_of_the_navigation_exists_once():
    named = pages.source_pages()
    assert len(named) == len(set(named))
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_every_link_of_every_page_leads_somewhere():
    generated = {path for path in pages.nav_paths() if path.startswith(pages.GENERATED)}
    assert list(links.broken_links(ROOT, tracked_pages(), generated.__contains__)) == []


def test_no_page_links_to_a_generated_page_which_exists_on_the_site_only():
    linked = [
        f"{page}: {match['target']}"
        for page in tracked_pages()
        for match in IMAGE_OR_LINK.finditer((ROOT / page).read_text(encoding="utf-8"))
        if os.path.normpath(os.path.join(os.path.dirname(page), match["target"])).startswith(
            pages.GENERATED
        )
    ]
    assert linked == [], f"link to {pages.REFERENCE}#name instead"


def test_the_site_leads_from_the_page_of_the_reference_to_the_generated_ones():
    known = set(pages.nav_paths())
    on_site = pages._without_foreign_links("ros2_ws/docs/a.md", known)
    assert on_site("[x](reference.md#codes)") == "[x](../../reference/codes.md)"
    headings = anchors((ROOT / pages.REFERENCE).read_text(encoding="utf-8"))
    generated = {Path(page).stem for page in known if page.startswith(pages.GENERATED)}
    assert generated <= set(headings)


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path):
    (tmp_path / "b.md").write_text("# One heading\n\n## Two: `code`, more\n")
    (tmp_path / "a.md").write_text(
        "[x](b.md) [x](b.md#two-code-more) [x](https://example.org) `[x](no.md)`\n"
        "```\n[x](no.md)\n```\n"
        "[y](c.md) ![z](d.png)\n[w](b.md#three) [v](../up.md)\n"
    )
    assert list(links.broken_links(tmp_path, ["a.md"])) == [
        "a.md:5: c.md: no such file",
        "a.md:5: d.png: no such file",
        "a.md:6: b.md#three: no heading #three in b.md",
        "a.md:6: ../up.md: leads out of the repository",
    ]


def test_headings_are_named_as_github_names_them():
    text = "# Nodes, and topics\n## `a_b` (x)\n## Same\n## Same\n```\n# no heading\n```\n"
    assert anchors(text) == {"nodes-and-topics", "a_b-x", "same", "same-1"}


def test_lists_become_those_of_python_markdown():
    text = "Words:\n- one\n  more\n  - below\n\n1. first\n\n   ```bash\n   x\n     y\n   ```\nend\n"
    assert with_list_breaks(text) == (
        "Words:\n\n- one\n    more\n    - below\n\n"
        "1. first\n\n    ```bash\n    x\n      y\n    ```\n    end\n"
    )


def test_a_page_without_a_source_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pages, "nav_paths", lambda: iter(["nowhere.md"]))
    with pytest.raises(pages.PageError, match=r"mkdocs.yml names nowhere.md, which does not exist"):
        pages.gather(tmp_path, {})
    monkeypatch.setattr(pages, "nav_paths", lambda: iter(["reference/nothing.md"]))
    with pytest.raises(pages.PageError, match="which nothing generates"):
        pages.gather(tmp_path, {})


def test_links_to_sources_become_text_and_images_come_along(tmp_path: Path):
    written = pages.gather(tmp_path, {p: "# x\n" for p in pages.nav_paths() if p.startswith("ref")})
    page = (tmp_path / "ARCHITECTURE.md").read_text()
    assert "](requirements/architecture/law.py)" in (ROOT / "ARCHITECTURE.md").read_text()
    assert "](requirements/architecture/law.py)" not in page
    assert tmp_path / "requirements/architecture/import_graph.svg" in written
    assert (tmp_path / "requirements/architecture/import_graph.svg").stat().st_size > 0


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_asks_nothing_of_the_network():
    pytest.importorskip("mkdocs", reason="make setup DOCS=1")
    built = subprocess.run(
        [sys.executable, "-m", "documentation.build"],
        cwd=ROOT / "requirements",
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    site = pages.BUILD / "site"
    texts = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert len(texts) >= len(set(pages.nav_paths()))
    loaded = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"?(?:https?:)?//[^\s>]+")
    assert [(path.name, found) for path, t in texts.items() for found in loaded.findall(t)] == []
    assert (site / "search" / "search_index.js").is_file()
