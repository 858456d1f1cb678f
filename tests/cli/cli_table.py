"""A table with columns of every kind, and the words that fit a small model to it: what the tests of commands share."""

import numpy as np
import pytest

from edited_files import taken_apart

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
ROWS = 30
FRAME = pd.DataFrame(
    {
        "id": [f"{number:03d}" for number in range(ROWS)],
        "x": RNG.uniform(-2, 2, ROWS),
        "colour": RNG.choice(["red", "green", "blue"], ROWS),
        "day": pd.date_range("2024-01-01", periods=ROWS).strftime("%d.%m.%Y"),
        "member": RNG.integers(0, 2, ROWS) == 1,
    }
)
FRAME["price"] = 2 * FRAME["x"] + (FRAME["colour"] == "red") + 0.1 * RNG.standard_normal(ROWS)
FRAME["size"] = np.where(FRAME["x"] > 0.7, "large", np.where(FRAME["x"] > -0.7, "middle", "small"))
#: The columns as numbers, by hand, in the order of the table.
NUMBERS = np.column_stack(
    [
        FRAME["x"],
        *[(FRAME["colour"] == value).to_numpy(float) for value in ("blue", "green", "red")],
        np.arange(ROWS),
        FRAME["member"].to_numpy(float),
    ]
)
SMALL = {"hidden_layer_sizes": (3,), "n_inducing": 4, "max_iter": 20, "n_predict_draws": 8}
WORDS = ["--hidden", "3", "--n-inducing", "4", "--max-iter", "20", "--set", "n_predict_draws=8"]
COLUMNS = ["--ignore", "id", "--date", "day:%d.%m.%Y"]


def fit_words(table, target, out, *more):
    return ["fit", str(table), "--target", target, "--out", str(out), *WORDS, "--input-kernel", "rbf", *more]


def digest(path):
    """Return the digest of a model's content (the order of a file's header is not fixed)."""
    return taken_apart(path)[0]["sha256"]
