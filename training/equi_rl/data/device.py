# SPDX-License-Identifier: MIT
"""The device that learns: the one module that names devices; all others follow their tensors.

Random numbers are always drawn on the host and copied, so a run draws the same ones on any device.
"""

from __future__ import annotations

from enum import Enum

import torch
from torch import Tensor

HOST = torch.device("cpu")


class Device(str, Enum):
    """Where the learner computes."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


class DeviceError(ValueError):
    """A device that is not there; says what is."""


def choose_device(wanted: Device | str = Device.AUTO) -> torch.device:
    """The device that is meant; `auto` is a GPU where torch finds one, else the CPU."""
    wanted = Device(wanted)
    if wanted is Device.CPU:
        return HOST
    if torch.cuda.is_available():
        return torch.device(Device.CUDA.value)
    if wanted is Device.AUTO:
        return HOST
    raise DeviceError(
        "device is cuda, but torch finds no GPU here: this build of torch is for"
        f" {'CUDA ' + torch.version.cuda if torch.version.cuda else 'the CPU alone'}; use --device"
        " cpu, or install a build of torch for your GPU in place of the pinned one"
    )


def describe_device(device: torch.device) -> str:
    """Name of the hardware, for a result that is sent to somebody."""
    if device.type == Device.CUDA.value:
        return torch.cuda.get_device_name(device)
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.partition(":")[2].strip() for line in file if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else device.type


def is_host(tensor: Tensor) -> bool:
    """Whether kernels for the CPU can be used on it."""
    return tensor.device == HOST


def normal_like(tensor: Tensor, generator: torch.Generator | None = None, *shape: int) -> Tensor:
    """Standard normal numbers where the tensor is, of its shape or another."""
    drawn = torch.randn(shape or tensor.shape, generator=generator, device=HOST)
    return drawn.to(tensor.device)


def uniform_like(tensor: Tensor, generator: torch.Generator | None, *shape: int) -> Tensor:
    """Numbers in [0, 1) of a shape, where the tensor is."""
    return torch.rand(shape, generator=generator, device=HOST).to(tensor.device)


def permutation_like(
    tensor: Tensor, count: int, generator: torch.Generator | None = None
) -> Tensor:
    """The numbers below `count` in random order, where the tensor is."""
    return torch.randperm(count, generator=generator, device=HOST).to(tensor.device)


def synchronise(device: torch.device) -> None:
    """Wait until everything that was asked of the device is done, to measure its time."""
    if device.type == Device.CUDA.value:
        torch.cuda.synchronize(device)
