# SPDX-License-Identifier: MIT
"""Statistical outlier removal by Open3D, for clouds that need it before they are fused."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def without_outliers(points_m: NDArray[np.float32]) -> NDArray[np.float32]:
    """Points (M, 3) whose distance to their neighbours is like that of the others.

    Args:
        points_m: points (N, C >= 3), columns 0..2 are x, y, z [m]; invalid ones are dropped.
    """
    import open3d  # a large library, loaded only by those who ask for it

    xyz: Any = points_m[:, :3].astype(np.float64)
    valid = np.isfinite(xyz).all(axis=1) & (xyz != 0.0).any(axis=1)
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(xyz[valid]))
    kept, _ = cloud.remove_statistical_outlier(nb_neighbors=12, std_ratio=2.0)
    return np.asarray(kept.points, dtype=np.float32)
