"""From labels, as the user has them, to the positions of classes among `classes_`."""

from typing import Any

import numpy as np


def class_numbers(classes: np.ndarray, y: Any, question: str) -> np.ndarray:
    """Return the position of every label among the classes.

    Labels are what `classes_` says. Where these are no numbers (words, for instance), whole numbers from 0 on are taken
    for the positions themselves, as they cannot be anything else.
    """
    y = np.asarray(y)
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim != 1:
        raise ValueError(f"{question}: expected one label for every row; got an array of shape {y.shape}.")
    if _are_numbers(y) and not _are_numbers(classes):
        known = (y >= 0) & (y < len(classes)) & (y == np.floor(y))
        found = np.where(known, y, 0).astype(int)
    else:
        places = {label: number for number, label in enumerate(classes.tolist())}
        found = np.array([places.get(label, -1) for label in y.tolist()], int)
        known = found >= 0
    if not np.all(known):
        row = int(np.argmin(known))
        raise ValueError(
            f"{question}: expected labels among {shown_labels(classes)}, as in `classes_`; got {y.tolist()[row]!r} "
            f"at row {row}."
        )
    return found


def _are_numbers(labels: np.ndarray) -> bool:
    return np.issubdtype(labels.dtype, np.number) or labels.dtype == bool


def shown_labels(classes: np.ndarray) -> str:
    """Return the labels as text: the first of them, if there are many."""
    shown = ", ".join(repr(label) for label in classes.tolist()[:8])
    return shown + (f", ... ({len(classes)} in all)" if len(classes) > 8 else "")
