"""Where the values of an expression's leaves come from when files are read."""

from __future__ import annotations

from typing import Union

from msgspec import Struct

__all__ = ["ConstantSource", "PhysicalSource", "PositionSource", "Source"]


class PhysicalSource(Struct, frozen=True, gc=False):
    """A physical column of the read, or a field within it.

    Parameters
    ----------
    index : int
        The number of the physical column in the read.
    path : tuple of int
        The child numbers of a field of a struct, from the column on; empty for the column itself.
    """

    index: int
    path: tuple[int, ...] = ()


class ConstantSource(Struct, frozen=True, gc=False):
    """A value per file, by its number among `ReadPlan.constants`; None: null for every file."""

    index: int | None


class PositionSource(Struct, frozen=True):
    """The row's physical position."""


Source = Union[PhysicalSource, ConstantSource, PositionSource]
