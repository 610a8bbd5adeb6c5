# SPDX-License-Identifier: MIT
"""What the packages offer, collected once for all tests of the documentation."""

from __future__ import annotations

from typing import Any

import pytest
from documentation.reference import catalogue


@pytest.fixture(scope="session")
def known() -> dict[str, Any]:
    """Commands, nodes, launch files, settings and codes of all packages."""
    return catalogue()
