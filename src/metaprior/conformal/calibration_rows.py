"""Which rows an estimator is fitted to, and which are held back to calibrate it."""

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import check_random_state

from metaprior.estimators.checks import expect, is_number, is_whole


def split_rows(X: Any, y: Any, size: Any, random_state: Any) -> tuple[Any, Any, Any, Any]:
    """Return X and y of the fit, then X and y of the calibration: a number of rows, or a part of them, at random."""
    X, y = indexable(X, y)
    num_rows = len(y)
    held = int(size) if is_whole(size) else int(np.ceil(size * num_rows)) if is_number(size) and 0 < size < 1 else 0
    what = f"a part between 0 and 1, or a number of rows from 1 to {num_rows - 1}"
    expect("calibration_size", size, what, 1 <= held < num_rows)
    order = check_random_state(random_state).permutation(num_rows)
    fitted, calibrated = np.sort(order[held:]), np.sort(order[:held])
    parts = [_safe_indexing(part, rows) for rows in (fitted, calibrated) for part in (X, y)]
    return parts[0], parts[1], parts[2], parts[3]
