"""What the loaders return, and what they raise."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


class DataError(RuntimeError):
    """A data file cannot be obtained, or is not what it should be; the message says what to do."""


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    """A data set with its origin; `X, y = data` unpacks it.

    Attributes
    ----------
    X : ndarray
        Inputs, one row per observation.
    y : ndarray
        Targets: numbers, or classes 0, 1, ...
    columns : tuple of str
        Names of the columns of X; empty for images.
    target : str
        What y is, with its unit.
    classes : tuple of str
        Names of the classes, so that `classes[y[0]]` is the class of the first row; empty if y holds numbers.
    licence : str
        Terms of the files that the data come from, as far as they are known.
    homepage : str
        Where the data are described.
    """

    X: np.ndarray
    y: np.ndarray
    licence: str
    homepage: str
    columns: tuple[str, ...] = ()
    target: str = ""
    classes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.X, self.y))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}: {a.dtype} {a.shape}" for name, a in (("X", self.X), ("y", self.y)))
        return f"Data({shapes}, licence: {self.licence})"
