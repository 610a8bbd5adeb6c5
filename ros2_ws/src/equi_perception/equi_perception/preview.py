# SPDX-License-Identifier: MIT
"""The observation as an RGB image for people: depth in grey, holding as a coloured border."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equi_core.observation.image import FloatImage

_HOLDING_COLOUR = (80, 200, 120)


def preview_rgb(observation: FloatImage, scale: int = 4) -> NDArray[np.uint8]:
    """RGB image (scale * S, scale * S, 3) of an observation (2, S, S): near is bright."""
    depth = observation[0]
    nearest, farthest = float(depth.min()), float(depth.max())
    span = max(farthest - nearest, 1e-6)
    grey = (255.0 * (1.0 - (depth - nearest) / span)).astype(np.uint8)
    enlarged = np.repeat(np.repeat(grey, scale, axis=0), scale, axis=1)
    rgb = np.repeat(enlarged[:, :, None], 3, axis=2)
    if observation[1].max() > 0.5:
        for edge in (rgb[:scale], rgb[-scale:], rgb[:, :scale], rgb[:, -scale:]):
            edge[:] = _HOLDING_COLOUR
    return rgb
