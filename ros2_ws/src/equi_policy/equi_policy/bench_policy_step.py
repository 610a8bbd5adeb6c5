# SPDX-License-Identifier: MIT
"""`equi-bench policy-step`: latency of the deployed policy on one core, and its start-up time.

Image in, action out, through the public ``act`` including its input checks. Import and load time
are measured in a fresh interpreter, so that nothing is warm; the benchmark also reports whether
anything of the training side was imported there (it must not be).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from safetensors.torch import save_file

from equi_core.contract import PolicyContract
from equi_policy.deployed_policy import CONTRACT_FILE, WEIGHTS_FILE, DeployedPolicy
from equi_policy.layout import LAYOUT_FORMAT, PolicyLayout

REFERENCE_NETWORK: dict[str, Any] = {
    "format": LAYOUT_FORMAT,
    "observation": "depth",
    "observation_size": 84,
    "actions": "continuous",
    "encoder_channels": [32, 64, 64, 64, 64, 128],
    "encoder_kernels": [8, 4, 3, 3, 3, 3],
    "encoder_strides": [4, 2, 1, 1, 1, 1],
    "action_channels": 16,
    "recurrent_channels": 128,
    "head_channels": [128, 128],
    "skip_connection": True,
    "squash": "tanh",
    "initial_state": "zero",
    "log_std_range": [-20.0, 2.0],
    "depth_offset_m": 0.15,
    "depth_scale_per_m": 10.0,
}
_START_UP = """
import json, sys, time
begin = time.perf_counter()
from pathlib import Path
from equi_policy.deployed_policy import DeployedPolicy
imported = time.perf_counter()
DeployedPolicy.load(Path(sys.argv[1]))
loaded = time.perf_counter()
foreign = sorted({"escnn", "pybullet", "equi_rl", "gymnasium", "rclpy"} & set(sys.modules))
sys.stdout.write(json.dumps([imported - begin, loaded - imported, foreign]))
"""


def run(options: list[str]) -> dict[str, object]:
    """Entry point of the benchmark."""
    parsed = _parse(options)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = parsed.model or write_random_policy(Path(scratch))
        import_s, load_s, foreign = _start_up(folder)
        policy = DeployedPolicy.load(folder)
    times_ms = _latencies_ms(policy, parsed.steps)
    p50, p99 = (float(np.percentile(times_ms, q)) for q in (50, 99))
    table = Table(title="Deployed policy, one core")
    for column in ("metric", "value"):
        table.add_column(column, justify="left" if column == "metric" else "right")
    for name, value in (
        ("step p50", f"{p50:.2f} ms"),
        ("step p99", f"{p99:.2f} ms"),
        ("slowest of " + str(parsed.steps), f"{max(times_ms):.2f} ms"),
        ("import in a fresh interpreter", f"{import_s:.2f} s"),
        ("load weights and contract", f"{load_s * 1e3:.1f} ms"),
        ("training packages imported", ", ".join(foreign) or "none"),
    ):
        table.add_row(name, value)
    Console(stderr=True).print(table)
    return {
        "p50_ms": round(p50, 3),
        "p99_ms": round(p99, 3),
        "max_ms": round(max(times_ms), 3),
        "steps": parsed.steps,
        "import_s": round(import_s, 3),
        "load_s": round(load_s, 4),
        "training_packages_imported": foreign,
    }


def write_random_policy(folder: Path, seed: int = 0) -> Path:
    """A model folder of the reference size with random weights, for measuring and trying out."""
    layout = PolicyLayout.from_network(REFERENCE_NETWORK)
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in layout.tensor_shapes().items():
        scale = math.sqrt(2.0 / math.prod(shape[1:])) if len(shape) > 1 else 0.0
        tensors[name] = torch.randn(shape, generator=generator) * scale
    save_file(tensors, folder / WEIGHTS_FILE)
    digest = hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()
    contract = PolicyContract(
        task="random_policy", network=REFERENCE_NETWORK, weights_sha256=digest
    )
    contract.save(folder / CONTRACT_FILE)
    return folder


def _latencies_ms(policy: DeployedPolicy, steps: int) -> list[float]:
    rng = np.random.default_rng(0)
    size = policy.layout.image_px
    images = rng.uniform(0.0, 0.3, (16, 2, size, size)).astype(np.float32)
    images[:, 1] = 0.0
    state = policy.initial_state()
    times = []
    for step in range(-50, steps):  # the first fifty warm up
        start = time.perf_counter()
        _, state = policy.act(images[step % 16], state)
        if step >= 0:
            times.append((time.perf_counter() - start) * 1e3)
        if step % 50 == 0:
            state = policy.initial_state()
    return times


def _start_up(folder: Path) -> tuple[float, float, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", _START_UP, str(folder)], capture_output=True, text=True, check=True
    )
    import_s, load_s, foreign = json.loads(done.stdout)
    return import_s, load_s, foreign


def _parse(options: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="equi-bench policy-step",
        description="Time the deployed policy. Example: equi-bench policy-step --steps 2000",
    )
    parser.add_argument("--model", type=Path, help="model folder; default: random weights")
    parser.add_argument("--steps", type=int, default=2000)
    parsed = parser.parse_args(options)
    if parsed.steps < 100:
        parser.error(f"--steps {parsed.steps}: a 99th percentile needs at least 100")
    return parsed
