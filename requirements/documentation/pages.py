# SPDX-License-Identifier: MIT
"""Which files are pages of the site, and how a page of the repository becomes one of the site.

Pages stay beside the code they describe, and the site keeps their paths, so a relative link is
right in both places. `mkdocs.yml` lists them in `nav`; `reference/` is generated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from .markdown import IMAGE_OR_LINK, outside_fences, with_list_breaks

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = ROOT / "mkdocs.yml"
BUILD = ROOT / "build" / "docs"
GENERATED = "reference/"
REFERENCE = "ros2_ws/docs/reference.md"
"""Stands for the generated pages where they do not exist, on GitHub: `reference.md#codes`."""
ASSETS = Path(__file__).parent / "assets"

# Pages (patterns) that lie beside what they describe and that the site has no place for.
NOT_ON_THE_SITE = ("ros2_ws/pip_ros2/README.md", "models/*/PROBE_CARD.md")


class PageError(Exception):
    """The pages and the configuration of the site do not fit together."""


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags name Python functions, without calling anything."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def configuration() -> dict[str, Any]:
    """mkdocs.yml as plain values; functions that it names are None."""
    loaded: dict[str, Any] = yaml.load(CONFIGURATION.read_text(encoding="utf-8"), _Loader)
    return loaded


def nav_paths(nav: Any = None) -> Iterator[str]:
    """Paths of all pages in the order of the navigation."""
    if nav is None:
        nav = configuration()["nav"]
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, Mapping):
        for entry in nav.values():
            yield from nav_paths(entry)
    else:
        for entry in nav:
            yield from nav_paths(entry)


def source_pages() -> list[str]:
    """Pages that lie in the repository, relative to its root."""
    return [path for path in nav_paths() if not path.startswith(GENERATED)]


def gather(target: Path, generated: Mapping[str, str]) -> list[Path]:
    """Write every page, and the images that pages show, below `target`.

    Args:
        target: folder that mkdocs reads.
        generated: Markdown of the generated pages by their path in the navigation.

    Returns:
        the files written; others below `target` are leftovers.

    Raises:
        PageError: a page of the navigation exists neither in the repository nor in `generated`.
    """
    pages = list(nav_paths())
    known = set(pages)
    written = [
        _write(target / "assets" / path.name, path.read_bytes()) for path in ASSETS.iterdir()
    ]
    for page in pages:
        if page.startswith(GENERATED):
            if page not in generated:
                raise PageError(f"mkdocs.yml names {page}, which nothing generates")
            text = generated[page]
        else:
            source = ROOT / page
            if not source.is_file():
                raise PageError(f"mkdocs.yml names {page}, which does not exist")
            text = source.read_text(encoding="utf-8")
            written += _copy_images(text, page, target)
        text = outside_fences(with_list_breaks(text), _without_foreign_links(page, known))
        written.append(_write(target / page, text.encode()))
    return written


def _copy_images(text: str, page: str, target: Path) -> Iterator[Path]:
    for match in IMAGE_OR_LINK.finditer(text):
        path = _inside(page, match["target"])
        if path and (ROOT / path).is_file() and Path(path).suffix in IMAGES:
            yield _write(target / path, (ROOT / path).read_bytes())


IMAGES = (".png", ".svg", ".gif", ".jpg", ".mp4")


def _without_foreign_links(page: str, known: set[str]) -> Callable[[str], str]:
    """Links to files that are no pages become plain text; the site does not carry the sources."""

    def replace(match: re.Match[str]) -> str:
        path = _inside(page, match["target"])
        generated = f"{GENERATED}{match['target'].partition('#')[2]}.md"
        if path == REFERENCE and generated in known:
            return f"[{match['text']}]({os.path.relpath(generated, os.path.dirname(page) or '.')})"
        if not path or path in known or Path(path).suffix in IMAGES:
            return match[0]
        words = match["text"]
        return words if words.startswith("`") else f"{words} (`{path}`)"

    return lambda text: IMAGE_OR_LINK.sub(replace, text)


def _inside(page: str, link: str) -> str:
    """The repository's path that a relative link of a page leads to; empty for any other link."""
    path = link.partition("#")[0]
    if not path or re.match(r"[a-z]+:", path):
        return ""
    return os.path.normpath(os.path.join(os.path.dirname(page), path))


def _write(path: Path, content: bytes) -> Path:
    """Write a file only if it changed: a server that watches the folder reloads at every write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_bytes() != content:
        path.write_bytes(content)
    return path
