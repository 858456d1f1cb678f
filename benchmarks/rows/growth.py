"""How the time of a fit and of a prediction grows with rows, columns, units and inducing rows.

The bar is on the exponent of a fit in rows. Every step of a fit sees all rows: its steps are timed, and their number
hardly depends on the rows. Beside each measured exponent stands that of the count of operations.
"""

import numpy as np

from benchmarks.measure import Row, peak_memory, seconds
from benchmarks.tables import friedman
from metaprior import MetaGPRegressor

ROWS, MANY_ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000), (1_000, 10_000, 100_000, 1_000_000)
COLUMNS, UNITS, INDUCING = (5, 10, 20, 40, 80), (25, 50, 100, 200, 400), (50, 100, 200, 400)
STEPS = 30


def _exponent(points: dict[int, float], top: int = 5) -> float:
    """Return the slope of log time against log size, over the largest sizes."""
    sizes, times = np.array(list(points)[-top:]), np.array(list(points.values())[-top:])
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def _step(num_rows: int, num_columns: int = 10, units: int = 50, **parameters: object) -> float:
    """Return the seconds of a step of a compiled fit."""
    x, y = friedman(num_rows, 0, num_columns)
    model = MetaGPRegressor((units,), random_state=0, max_iter=STEPS, **parameters)
    model.fit(x, y)
    return seconds(lambda: model.fit(x, y)) / STEPS


def _predict(num_rows: int, num_columns: int = 10, units: int = 50, **parameters: object) -> float:
    model = MetaGPRegressor((units,), random_state=0, max_iter=STEPS, **parameters)
    model.fit(*friedman(1000, 0, num_columns))
    x = friedman(num_rows, 1, num_columns)[0]
    model.predict(x, return_std=True)
    return seconds(lambda: model.predict(x, return_std=True))


def measure() -> Row:
    """Return the exponent of a fit in rows."""
    local = {"input_kernel": "rbf", "output_layer": "inducing_rows"}
    series = {
        "fit, rows": {n: _step(n) for n in ROWS},
        "fit, columns (10,000 rows)": {d: _step(10_000, d) for d in COLUMNS},
        "fit, units (10,000 rows)": {h: _step(10_000, units=h) for h in UNITS},
        "fit, inducing rows (2,000 rows, local)": {
            m: _step(2000, n_inducing_rows=m, early_stopping=True, **local) for m in INDUCING
        },
        "predict, rows": {n: _predict(n) for n in MANY_ROWS},
        "predict, columns (20,000 rows)": {d: _predict(20_000, d) for d in COLUMNS},
        "predict, units (20,000 rows)": {h: _predict(20_000, units=h) for h in UNITS},
    }
    counted = {
        "fit, rows": 1.0,
        "fit, columns (10,000 rows)": "0 to 1",
        "fit, units (10,000 rows)": "1 to 2",
        "fit, inducing rows (2,000 rows, local)": "1 to 2",
        "predict, rows": 1.0,
        "predict, columns (20,000 rows)": "0 to 1",
        "predict, units (20,000 rows)": "1 to 2",
    }
    exponents = {name: _exponent(points) for name, points in series.items()}
    return Row(
        "exponent of a fit in rows, 10,000 to 1,000,000 (10 columns, default model)",
        exponents["fit, rows"],
        "<= 1.05",
        {
            **{f"exponent: {name} (operations: {counted[name]})": value for name, value in exponents.items()},
            **{
                f"seconds: {name}": ", ".join(f"{size:,}: {value:.3g}" for size, value in points.items())
                for name, points in series.items()
            },
            "peak memory (MiB)": peak_memory(),
        },
    )
