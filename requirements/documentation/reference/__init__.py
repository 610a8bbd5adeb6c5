# SPDX-License-Identifier: MIT
"""The reference: pages that are written from the code, so that they cannot be out of date."""

from __future__ import annotations

from .api import api_page
from .catalogue import CatalogueError, catalogue
from .interfaces import interface_files
from .render import (
    codes_page,
    commands_page,
    interfaces_page,
    launch_page,
    nodes_page,
    settings_page,
    topics_page,
)

__all__ = ["CatalogueError", "catalogue", "generated_pages"]


def generated_pages() -> dict[str, str]:
    """Markdown of every generated page, by its path on the site.

    Raises:
        CatalogueError: a package cannot be imported, or a node cannot be constructed.
    """
    known = catalogue()
    return {
        "reference/commands.md": commands_page(known["commands"]),
        "reference/launch.md": launch_page(known["launch_files"]),
        "reference/parameters.md": nodes_page(known["nodes"]),
        "reference/topics.md": topics_page(known["nodes"]),
        "reference/interfaces.md": interfaces_page(interface_files()),
        "reference/files.md": settings_page(known["settings"]),
        "reference/codes.md": codes_page(known["codes"]),
        "reference/api.md": api_page(),
    }
