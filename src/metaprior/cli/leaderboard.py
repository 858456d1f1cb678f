"""The table of `metaprior compare`: one row per method, the best first."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd


class Score(NamedTuple):
    """A column of the leaderboard: its head, and the value that is best (None: no order)."""

    head: str
    best: float | None


LARGEST, SMALLEST = float("inf"), float("-inf")
#: The scores that are shown, in their order, for each task.
SHOWN = {
    "regression": {
        "rmse": Score("RMSE", SMALLEST),
        "nll": Score("NLL", SMALLEST),
        "crps": Score("CRPS", SMALLEST),
        "coverage_95": Score("95 % coverage", 0.95),
        "fit_seconds": Score("seconds", None),
    },
    "classification": {
        "accuracy": Score("accuracy", LARGEST),
        "nll": Score("NLL", SMALLEST),
        "calibration_error": Score("ECE", 0.0),
        "fit_seconds": Score("seconds", None),
    },
}
#: By what the methods are sorted: a score that all of them have.
USUAL_ORDER = {"regression": "rmse", "classification": "nll"}


def sorted_table(table: "pd.DataFrame", task: str, order: str) -> "pd.DataFrame":
    """Return the table of `metaprior.compare`, the best method by a score first, and those without it last."""
    distance = distances(table[order, "mean"], SHOWN[task][order])
    return table.loc[distance.sort_values(kind="stable", na_position="last").index]


def distances(values: "pd.Series", score: Score) -> "pd.Series":
    """Return how far values are from the best: smaller is better."""
    if score.best is None or score.best == SMALLEST:
        return values
    return -values if score.best == LARGEST else (values - score.best).abs()


def flat_table(table: "pd.DataFrame") -> "pd.DataFrame":
    """Return the table with plain columns, for a file: `method`, then every score and its standard error."""
    import pandas as pd

    columns = {name if kind == "mean" else f"{name}_se": table[name, kind].to_numpy() for name, kind in table.columns}
    return pd.DataFrame({"method": list(table.index), **columns})


def leaderboard(table: "pd.DataFrame", task: str) -> str:
    """Return the table as aligned text. The best of each column has a star."""
    shown = {name: score for name, score in SHOWN[task].items() if name in table}
    rows = [["method", *[score.head for score in shown.values()]]]
    stars = {name: _best(table, name, score) for name, score in shown.items()}
    for method in table.index:
        cells = [_cell(table.loc[method], name, method == stars[name]) for name in shown]
        rows.append([str(method), *cells])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  " + "  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip() for row in rows)


def _best(table: "pd.DataFrame", name: str, score: Score) -> Any:
    distance = distances(table[name, "mean"], score).dropna()
    return None if score.best is None or distance.empty else distance.idxmin()


def _cell(row: Any, name: str, is_best: bool) -> str:
    """Return a mean with its standard error, and a star if it is the best; a dash for a score that is unknown."""
    mean, error = float(row[name, "mean"]), float(row[name, "se"])
    if mean != mean:
        return "-"
    if name == "fit_seconds":
        return f"{mean:.1f}"
    return f"{mean:.4g}{'' if error != error else f' ± {error:.2g}'}{' *' if is_best else ''}"
