# SPDX-License-Identifier: MIT
"""One number for all tensors of a checkpoint: equal if and only if every bit is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from torch import Tensor


def weights_digest(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 over names, types, shapes and values, in the order of the names."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        total.update(tensor.numpy().tobytes())
    return total.hexdigest()
