"""How the time of a fit and of a prediction grows with rows, columns, units and inducing rows.

The bar is on the exponent in rows of a step that sees all of them; fits of one phase have no other steps. Whole fits,
which begin with steps of few rows, stand beside it. Each exponent has that of its count of operations beside it.
"""

import numpy as np

from benchmarks.measure import Row, peak_memory, seconds
from benchmarks.tables import friedman
from metaprior import MetaGPRegressor

ROWS, MANY_ROWS = (10_000, 30_000, 100_000, 300_000, 1_000_000), (1_000, 10_000, 100_000, 1_000_000)
COLUMNS, UNITS, INDUCING = (5, 10, 20, 40, 80), (25, 50, 100, 200, 400), (50, 100, 200, 400)
STEPS = 30
#: Whole fits in rows, and what makes a fit one phase of so many steps: another rule for its end, which never holds.
WHOLE, ONE_PHASE = (10_000, 100_000, 1_000_000), {"tol": 1e-12, "n_iter_no_change": STEPS}


def _exponent(points: dict[int, float], top: int = 5) -> float:
    """Return the slope of log time against log size, over the largest sizes."""
    sizes, times = np.array(list(points)[-top:]), np.array(list(points.values())[-top:])
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def _step(num_rows: int, num_columns: int = 10, units: int = 50, **parameters: object) -> float:
    """Return the seconds of a step of a compiled fit."""
    x, y = friedman(num_rows, 0, num_columns)
    model = MetaGPRegressor(
        (units,), random_state=0, max_iter=STEPS, **ONE_PHASE, **{"input_kernel": None, **parameters}
    )
    model.fit(x, y)
    return seconds(lambda: model.fit(x, y)) / STEPS


def _whole_fit(num_rows: int) -> float:
    """Return the seconds of a fit that ends when its bound is flat, compiling and all."""
    x, y = friedman(num_rows, 0, 10)
    return seconds(lambda: MetaGPRegressor(input_kernel=None, random_state=0).fit(x, y))


def _predict(num_rows: int, num_columns: int = 10, units: int = 50, **parameters: object) -> float:
    model = MetaGPRegressor((units,), random_state=0, max_iter=STEPS, **{"input_kernel": None, **parameters})
    model.fit(*friedman(1000, 0, num_columns))
    x = friedman(num_rows, 1, num_columns)[0]
    model.predict(x, return_std=True)
    return seconds(lambda: model.predict(x, return_std=True))


def measure() -> Row:
    """Return the exponent of a fit in rows."""
    local = {"input_kernel": "rbf", "output_layer": "inducing_rows"}
    series = {
        "step, rows": {n: _step(n) for n in ROWS},
        "whole fit, rows": {n: _whole_fit(n) for n in WHOLE},
        "step, columns (10,000 rows)": {d: _step(10_000, d) for d in COLUMNS},
        "step, units (10,000 rows)": {h: _step(10_000, units=h) for h in UNITS},
        "step, inducing rows (2,000 rows, local)": {m: _step(2000, n_inducing_rows=m, **local) for m in INDUCING},
        "predict, rows": {n: _predict(n) for n in MANY_ROWS},
        "predict, columns (20,000 rows)": {d: _predict(20_000, d) for d in COLUMNS},
        "predict, units (20,000 rows)": {h: _predict(20_000, units=h) for h in UNITS},
    }
    counted = {
        "step, rows": 1.0,
        "whole fit, rows": "0 to 1",
        "step, columns (10,000 rows)": "0 to 1",
        "step, units (10,000 rows)": "1 to 2",
        "step, inducing rows (2,000 rows, local)": "1 to 2",
        "predict, rows": 1.0,
        "predict, columns (20,000 rows)": "0 to 1",
        "predict, units (20,000 rows)": "1 to 2",
    }
    exponents = {name: _exponent(points) for name, points in series.items()}
    return Row(
        "exponent of a fit in rows, 10,000 to 1,000,000 (steps that see all rows; 10 columns, no input kernel)",
        exponents["step, rows"],
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
