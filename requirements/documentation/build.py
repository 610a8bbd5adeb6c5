# SPDX-License-Identifier: MIT
"""Builds the documentation site, or serves it and rebuilds at every change.

make docs                              build/docs/site/index.html
make docs-serve ARGS="--port 8001"
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time

from . import pages
from .pages import BUILD, ROOT, PageError

PAGES = BUILD / "pages"
_LOOK_S = 1.0


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="make docs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--serve", action="store_true", help="show the site on this machine")
    parser.add_argument("--port", type=int, default=8000, help="of the server; default 8000")
    options = parser.parse_args(arguments)
    try:
        write_pages()
    except PageError as error:
        sys.stderr.write(f"make docs: {error}\n")
        return 2
    # The theme advertises another product; the variable is its own switch for that.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    mkdocs = [sys.executable, "-m", "mkdocs"]
    if not options.serve:
        built = subprocess.run([*mkdocs, "build", "--strict", "--quiet"], cwd=ROOT, env=environment)
        if built.returncode == 0:
            sys.stdout.write(f"{(BUILD / 'site' / 'index.html').relative_to(ROOT)}\n")
        return built.returncode
    threading.Thread(target=_gather_again, daemon=True).start()
    address = f"127.0.0.1:{options.port}"
    try:
        return subprocess.run(
            [*mkdocs, "serve", "-a", address], cwd=ROOT, env=environment
        ).returncode
    except KeyboardInterrupt:
        return 0


def write_pages() -> None:
    """Gather and generate every page below build/docs/pages; leftovers are removed."""
    from .reference import generated_pages

    written = {*pages.gather(PAGES, generated_pages())}
    for path in PAGES.rglob("*"):
        if path.is_file() and path not in written:
            path.unlink()


def _gather_again() -> None:
    """Gather the pages of the repository whenever one of them is saved."""
    seen = _newest()
    while True:
        time.sleep(_LOOK_S)
        now = _newest()
        if now != seen:
            seen = now
            try:
                write_pages()
            except PageError as error:
                sys.stderr.write(f"make docs-serve: {error}\n")


def _newest() -> float:
    sources = [ROOT / page for page in pages.source_pages()]
    return max(path.stat().st_mtime for path in sources if path.is_file())


if __name__ == "__main__":
    sys.exit(main())
