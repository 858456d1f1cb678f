"""Rows of a predictive distribution by slices, masks and numbers, as NumPy's indexing has them."""

from typing import Any

import numpy as np


def row_numbers(rows: Any, num_rows: int) -> np.ndarray:
    """Return the numbers of the rows that an index asks for, in its order; one number stands for one row."""
    if isinstance(rows, slice):
        found = np.arange(num_rows)[rows]
    else:
        index = np.asarray(rows)
        if index.dtype == bool:
            found = _of_mask(index, num_rows)
        elif index.ndim <= 1 and np.issubdtype(index.dtype, np.integer):
            found = _of_numbers(np.atleast_1d(index), num_rows)
        else:
            raise IndexError(
                f"expected rows: a slice, a number, an array of whole numbers or a mask of {num_rows}; got {rows!r}. "
                "Columns are not selected."
            )
    if len(found) == 0:
        raise IndexError(f"expected at least one of the {num_rows} rows; the index {rows!r} selects none.")
    return found


def _of_mask(mask: np.ndarray, num_rows: int) -> np.ndarray:
    if mask.shape != (num_rows,):
        raise IndexError(f"expected a mask with one value for each of the {num_rows} rows; got the shape {mask.shape}.")
    return np.flatnonzero(mask)


def _of_numbers(numbers: np.ndarray, num_rows: int) -> np.ndarray:
    outside = (numbers < -num_rows) | (numbers >= num_rows)
    if np.any(outside):
        wrong = numbers[outside].tolist()[0]
        raise IndexError(f"expected rows from {-num_rows} to {num_rows - 1}; got {wrong}.")
    return np.where(numbers < 0, numbers + num_rows, numbers)
