"""How a method stands among others on several tables: mean ranks, and on which tables it is level with the best.

A method is level with the best of a table if it has the lowest mean over the splits, or if its mean lies above the
lowest by at most one standard error of the difference, which is taken split by split. With one split there is no
standard error, and only the lowest is level.
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from metaprior_reproduction.parts.item import Results
from metaprior_reproduction.parts.verdicts import paired


def best(results: Results, table: str, models: Sequence[str], metric: str) -> str:
    """Return the model of the lowest mean on a table."""
    return min(models, key=lambda model: results.summary(f"{table} {model}", metric).mean)


def is_level_with_best(results: Results, table: str, model: str, models: Sequence[str], metric: str) -> bool:
    """Return whether a model is the best of a table, or within one standard error of it."""
    lowest = best(results, table, models, metric)
    if model == lowest:
        return True
    difference = paired(results, f"{table} {model}", f"{table} {lowest}", metric)
    return bool(difference.mean <= np.nan_to_num(difference.se))


def level_tables(results: Results, model: str, models: Sequence[str], metric: str) -> list[str]:
    """Return the tables on which a model is the best or level with it."""
    tables = results.config["tables"]
    return [table for table in tables if is_level_with_best(results, table, model, models, metric)]


def mean_ranks(results: Results, models: Sequence[str], metric: str) -> dict[str, float]:
    """Return every model's rank by the mean over splits, 1 being the lowest, averaged over tables; ties share one."""
    means = [
        [results.summary(f"{table} {model}", metric).mean for model in models] for table in results.config["tables"]
    ]
    return dict(zip(models, np.mean(rankdata(means, axis=1), axis=0).tolist(), strict=True))
