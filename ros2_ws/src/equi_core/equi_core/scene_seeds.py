# SPDX-License-Identifier: MIT
"""Which seeds draw which scenes, so that no policy is measured on a scene that it knows.

Training draws from below `SELECTION_SEED`, checkpoints are chosen on scenes from there on, and
final evaluations, in the training environment as through all nodes, start at `TEST_SEED`.
"""

from __future__ import annotations

SEEDS_PER_RUN = 1_000_000
"""Scenes of run s are drawn from seeds s * this onwards, so runs share no training scene."""
SELECTION_SEED = 500_000_000
"""First seed of the scenes on which checkpoints are compared."""
TEST_SEED = 900_000_000
"""First seed of the scenes of final evaluations; no run trains or selects on them."""
