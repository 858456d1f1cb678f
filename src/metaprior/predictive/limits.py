"""What a predictive distribution refuses: numbers that are none, and joint covariances that are too large."""

import numpy as np

#: The most numbers of a joint covariance, all targets together: a gigabyte.
MOST_COVARIANCES = 1 << 27


def require_room(question: str, num_rows: int, times: int) -> None:
    """Raise an error if so many matrices over all rows are too large."""
    size = times * num_rows**2
    if size > MOST_COVARIANCES:
        raise ValueError(
            f"{question}: the joint covariance of {num_rows} rows would have {size} numbers, "
            f"{8 * size / 2**30:.1f} GB; expected at most {MOST_COVARIANCES}. Ask for fewer rows, such as "
            f"predicted[:{int((MOST_COVARIANCES / times) ** 0.5)}]."
        )


def require_finite(numbers: np.ndarray) -> None:
    """Raise an error if a prediction is not a number: the first row where that is so is named."""
    wrong = np.flatnonzero(~np.all(np.isfinite(numbers), axis=1))
    if len(wrong):
        raise ValueError(
            f"predict: the numbers at {len(wrong)} of {len(numbers)} rows are not finite, first at row {wrong[0]}. "
            "Either its inputs are too far from the data, or the numbers of the model do not fit together."
        )


def counted(number: int, what: str) -> str:
    """Return "1 row", "2 rows"."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
