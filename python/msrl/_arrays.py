"""Arrays as the C++ library takes them: float64, row-major; without a copy where they are that."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from msrl._core import UserError

_KINDS = {1: "a vector", 2: "a matrix with one row per step"}


def as_numbers(name: str, value: ArrayLike, ndim: int) -> NDArray[np.float64]:
    """`value` as float64 and row-major; itself if it is so already. UserError if it can't be."""
    try:
        array: NDArray[Any] = np.asarray(value)
    except ValueError as error:
        raise UserError(f"{name} is no array: {error}") from None
    if array.dtype.kind not in "biuf":
        raise UserError(f"{name} has dtype {array.dtype}; real numbers are needed")
    if array.ndim != ndim:
        raise UserError(f"{name} has shape {array.shape}; it should be {_KINDS[ndim]}")
    return np.ascontiguousarray(array, dtype=np.float64)
