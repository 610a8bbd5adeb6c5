# SPDX-License-Identifier: MIT
"""Groups and representations: the only place where a symmetry of the task is declared.

Conventions, fixed for the whole project. The image has rows along world +x (down) and columns
along world +y (right), so a counter-clockwise rotation of the world is one of the
image (``rot90`` with ``k=1``), and the mirror of a dihedral group is y -> -y, that is a
left-right flip of the image. An element ``g = (rotation k, mirror m)`` first mirrors, then rotates
by ``2 pi k / n``.

The pure part (elements, matrices, rotating images) needs numpy and torch only; the functions that
return escnn types import escnn when first called.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch.nn import functional

if TYPE_CHECKING:
    from escnn.gspaces import GSpace
    from escnn.nn import FieldType

Array = TypeVar("Array", np.ndarray, torch.Tensor)

_PLANE = slice(1, 3)
_YAW = 4


class SymmetryError(ValueError):
    """A group, representation or array that does not fit the declared symmetry."""


@dataclass(frozen=True)
class Element:
    """One group element: mirror first (if set), then rotate by ``rotation`` steps."""

    rotation: int
    mirror: bool = False

    def __str__(self) -> str:
        return f"{'m' if self.mirror else 'r'}{self.rotation}"


@dataclass(frozen=True)
class Group:
    """A finite symmetry group: C_n or D_n on the plane, or the flip of a line.

    Attributes:
        name: ``C4``, ``C8``, ``D4``, ``D8``, or ``flip``.
        rotations: number n of rotations (1 for the flip group).
        mirrored: whether mirrors belong to the group.
        on_line: the flip group, which negates every component of a 1-D observation.
    """

    name: str
    rotations: int
    mirrored: bool
    on_line: bool = False

    @property
    def order(self) -> int:
        """Number of elements."""
        return self.rotations * (2 if self.mirrored else 1)

    @property
    def elements(self) -> tuple[Element, ...]:
        """All elements, in the order of the regular representation's coordinates."""
        mirrors = (False, True) if self.mirrored else (False,)
        return tuple(Element(k, m) for m in mirrors for k in range(self.rotations))

    @property
    def permutes_axes(self) -> bool:
        """Whether every element maps the x and y axes onto themselves or each other."""
        return all(self.is_exact_on_pixels(g) for g in self.elements)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.elements)

    def compose(self, left: Element, right: Element) -> Element:
        """The element that applies ``right`` first and ``left`` second."""
        rotated = -right.rotation if left.mirror else right.rotation
        return Element((left.rotation + rotated) % self.rotations, left.mirror != right.mirror)

    def inverse(self, g: Element) -> Element:
        """The element that undoes ``g``; a mirror undoes itself."""
        return g if g.mirror else Element(-g.rotation % self.rotations)

    def angle_rad(self, g: Element) -> float:
        """Rotation angle of ``g`` in [0, 2 pi), counter-clockwise."""
        return 2.0 * math.pi * g.rotation / self.rotations

    def is_exact_on_pixels(self, g: Element) -> bool:
        """Whether ``g`` maps a square pixel grid onto itself (multiples of 90 degrees)."""
        return (4 * g.rotation) % self.rotations == 0

    def plane_matrix(self, g: Element) -> np.ndarray:
        """Standard representation: (2, 2) matrix acting on world (x, y)."""
        angle = self.angle_rad(g)
        cos, sin = math.cos(angle), math.sin(angle)
        if self.is_exact_on_pixels(g):  # quarter turns without rounding error
            cos, sin = float(round(cos)), float(round(sin))
        matrix = np.array([[cos, -sin], [sin, cos]])
        return matrix @ np.diag([1.0, -1.0]) if g.mirror else matrix

    def action_matrix(self, g: Element) -> np.ndarray:
        """Mixed representation of (w, x, y, z, r): (5, 5). Yaw changes sign under a mirror."""
        matrix = np.eye(5)
        matrix[_PLANE, _PLANE] = self.plane_matrix(g)
        matrix[_YAW, _YAW] = -1.0 if g.mirror else 1.0
        return matrix

    def log_std_matrix(self, g: Element) -> np.ndarray:
        """How the five standard deviations move: (5, 5), x and y swap with the axes.

        For rotations that do not map axes onto axes only an isotropic pair is meaningful, and the
        matrix is the identity.
        """
        matrix = np.eye(5)
        if self.is_exact_on_pixels(g):
            matrix[_PLANE, _PLANE] = np.abs(self.plane_matrix(g))
        return matrix

    def regular_permutation(self, g: Element) -> np.ndarray:
        """Index array p with ``(rho(g) v) = v[p]`` for one regular field v of shape (order,)."""
        index = {h: i for i, h in enumerate(self.elements)}
        inverse = self.inverse(g)
        return np.array([index[self.compose(inverse, h)] for h in self.elements])


_GROUPS = {
    "C4": Group("C4", 4, False),
    "C8": Group("C8", 8, False),
    "D4": Group("D4", 4, True),
    "D8": Group("D8", 8, True),
    "flip": Group("flip", 1, True, on_line=True),
}
GROUP_NAMES = tuple(_GROUPS)


def group_named(name: str) -> Group:
    """The declared group called ``name``; raises SymmetryError naming the known ones."""
    if name not in _GROUPS:
        raise SymmetryError(f"group = {name!r} is not known; choose one of {', '.join(_GROUPS)}")
    return _GROUPS[name]


# --- acting on arrays -----------------------------------------------------------------------------


def rotate_images(images: torch.Tensor, angle_rad: float) -> torch.Tensor:
    """Rotate (..., S, S) images counter-clockwise about their centre ((S-1)/2, (S-1)/2).

    Multiples of 90 degrees move pixels without interpolation; other angles are bilinear with the
    border replicated.
    """
    quarter_turns = angle_rad / (math.pi / 2.0)
    if abs(quarter_turns - round(quarter_turns)) < 1e-9:
        return torch.rot90(images, round(quarter_turns), dims=(-2, -1))
    size = images.shape[-1]
    flat = images.reshape(1, -1, size, size)
    cos, sin = math.cos(angle_rad), math.sin(angle_rad)
    # grid_sample reads at (right, down); the image rotated by +angle reads from -angle.
    source_from_target = torch.tensor(
        [[[cos, -sin, 0.0], [sin, cos, 0.0]]], dtype=images.dtype, device=images.device
    )
    grid = functional.affine_grid(source_from_target, [1, 1, size, size], align_corners=True)
    rotated = functional.grid_sample(
        flat, grid, mode="bilinear", padding_mode="border", align_corners=True
    )
    return rotated.reshape(images.shape)


def transform_images(group: Group, g: Element, images: Array) -> Array:
    """Act with ``g`` on (..., S, S) images of trivial channels."""
    if images.shape[-1] != images.shape[-2]:
        raise SymmetryError(f"images must be square, got {tuple(images.shape[-2:])}")
    tensor = torch.as_tensor(images)
    if g.mirror:
        tensor = torch.flip(tensor, dims=(-1,))
    tensor = rotate_images(tensor, group.angle_rad(g))
    return tensor.numpy() if isinstance(images, np.ndarray) else tensor


def transform_observation(group: Group, g: Element, observation: Array) -> Array:
    """Act on an observation: (..., C, S, S) images, or (..., D) on the line (sign flip)."""
    if group.on_line:
        return -observation if g.mirror else observation
    return transform_images(group, g, observation)


def transform_action(group: Group, g: Element, action: Array) -> Array:
    """Act on continuous actions (..., 5) in the order (w, x, y, z, r)."""
    return _apply(group.action_matrix(g), action)


def transform_log_std(group: Group, g: Element, log_std: Array) -> Array:
    """Act on (..., 5) logarithms of the action's standard deviations."""
    return _apply(group.log_std_matrix(g), log_std)


def transform_regular(group: Group, g: Element, field: Array) -> Array:
    """Act on (..., fields * order) coordinates in the regular representation."""
    if field.shape[-1] % group.order:
        raise SymmetryError(
            f"{field.shape[-1]} coordinates do not divide into regular fields of {group.name}"
            f" ({group.order} coordinates each)"
        )
    fields = field.reshape(*field.shape[:-1], -1, group.order)
    return fields[..., group.regular_permutation(g).tolist()].reshape(field.shape)


def transform_discrete_action(group: Group, g: Element, index: Array) -> Array:
    """Act on discrete actions, numbered like the group's elements (regular representation)."""
    # rho(g) moves coordinate h to gh, so an action moves by the inverse of the gathering index.
    moved = np.argsort(group.regular_permutation(g))
    if isinstance(index, torch.Tensor):
        return torch.as_tensor(moved)[index]
    return moved[index]


def _apply(matrix: np.ndarray, vectors: Array) -> Array:
    if vectors.shape[-1] != matrix.shape[0]:
        raise SymmetryError(f"expected {matrix.shape[0]} components, got {vectors.shape[-1]}")
    if isinstance(vectors, torch.Tensor):
        return vectors @ torch.as_tensor(matrix.T, dtype=vectors.dtype, device=vectors.device)
    return (vectors @ matrix.T).astype(vectors.dtype)


# --- escnn field types ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """What a vector of channels consists of: a sequence of (kind, number of channels).

    Kinds: ``trivial``, ``regular``, ``action`` (5 channels w x y z r), ``log_std_permuted`` (the
    same five, x and y swapping), ``sign`` (negated by the flip of a line), ``vector`` (pairs that
    rotate with the plane).
    """

    parts: tuple[tuple[str, int], ...]

    @property
    def channels(self) -> int:
        """Total number of channels."""
        return sum(count for _, count in self.parts)

    def __add__(self, other: Layout) -> Layout:
        return Layout(self.parts + other.parts)

    def field_type(self, group: Group) -> FieldType:
        """The escnn field type of this layout; raises SymmetryError if widths do not divide."""
        from escnn import nn as escnn_nn

        space = escnn_space(group)
        fields: list[Any] = []
        for kind, channels in self.parts:
            fields += _fields(group, space, kind, channels)
        return escnn_nn.FieldType(space, fields)


def trivial(channels: int) -> Layout:
    """Channels that do not change."""
    return Layout((("trivial", channels),))


def regular(channels: int) -> Layout:
    """``channels / order`` regular fields."""
    return Layout((("regular", channels),))


def sign(channels: int) -> Layout:
    """Channels that change sign under the flip of a line."""
    return Layout((("sign", channels),))


ACTION = Layout((("action", 5),))
LOG_STD_PERMUTED = Layout((("log_std_permuted", 5),))


@cache
def escnn_space(group: Group) -> GSpace:
    """The escnn space in which the group acts on images exactly as declared above."""
    from escnn import gspaces

    if group.on_line:
        return gspaces.flip2dOnR2()
    if group.mirrored:
        return gspaces.flipRot2dOnR2(group.rotations)
    return gspaces.rot2dOnR2(group.rotations)


def escnn_element(group: Group, g: Element) -> Any:
    """The escnn group element that corresponds to ``g``."""
    fiber = escnn_space(group).fibergroup
    if group.on_line:
        return fiber.element(int(g.mirror))
    if group.mirrored:
        return fiber.element((int(g.mirror), g.rotation))
    return fiber.element(g.rotation)


def _fields(group: Group, space: GSpace, kind: str, channels: int) -> list[Any]:
    if kind == "trivial":
        return channels * [space.trivial_repr]
    if kind == "regular":
        if channels % group.order:
            raise SymmetryError(
                f"{channels} channels do not divide into regular fields of {group.name};"
                f" use a multiple of {group.order}"
            )
        return (channels // group.order) * [space.regular_repr]
    if kind == "sign" and group.on_line:
        return channels * [space.fibergroup.irrep(1)]
    if kind == "vector" and not group.on_line:
        return (channels // 2) * [space.irrep(1, 1) if group.mirrored else space.irrep(1)]
    if kind == "action" and not group.on_line:
        one = space.trivial_repr
        plane = space.irrep(1, 1) if group.mirrored else space.irrep(1)
        yaw = space.irrep(1, 0) if group.mirrored else one
        return [one, plane, one, yaw]
    if kind == "log_std_permuted" and group.permutes_axes and not group.on_line:
        one = space.trivial_repr
        return [one, _axis_swap(group), one, one]
    raise SymmetryError(f"the {kind} layout is not defined for the group {group.name}")


@cache
def _axis_swap(group: Group) -> Any:
    """Representation that swaps (x, y) whenever ``g`` swaps the axes: trivial + a sign irrep."""
    from escnn.group import directsum

    fiber = escnn_space(group).fibergroup
    swap = fiber.irrep(0, 2) if group.mirrored else fiber.irrep(2)
    change = np.array([[1.0, 1.0], [1.0, -1.0]]) / math.sqrt(2.0)
    return directsum([fiber.trivial_representation, swap], change, name="axis_swap")
