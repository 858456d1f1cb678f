"""A component in words: "a weekly period, growing; 31 % of the variance".

Every base kernel says what it is, with numbers in the units of the data. A linear factor means a size that changes;
in which direction is seen in the posterior mean, because the prior does not say.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from metaprior.kernels.composition.bases import STATIONARY, Base
from metaprior.kernels.composition.expression import Term, factors

#: Units of time in days, and periods that have a name.
DAYS = {
    "second": 1 / 86400,
    "minute": 1 / 1440,
    "hour": 1 / 24,
    "day": 1.0,
    "week": 7.0,
    "month": 365.25 / 12,
    "quarter": 365.25 / 4,
    "year": 365.25,
}
PERIODS = {"hourly": 1 / 24, "daily": 1.0, "weekly": 7.0, "monthly": 365.25 / 12, "quarterly": 365.25 / 4}
PERIODS |= {"yearly": 365.25}
#: How near a period is to that of its name, as a share of it.
NEAR = 0.02
#: A lengthscale is that of a trend from this share of the column's range on, and that of wiggles up to the other.
TREND, WIGGLES = 1 / 3, 1 / 20
#: A size grows if it is so many times larger at one end of the data than at the other.
GROWS = 1.25


class Columns(NamedTuple):
    """The columns' names, units and values, in the units of the data."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    x: np.ndarray

    def amount(self, column: int, value: float) -> str:
        """Return a length along a column with its unit."""
        unit = self.units[column]
        if unit.removesuffix("s") in DAYS:
            unit = unit.removesuffix("s") + ("" if f"{value:.3g}" == "1" else "s")
        return f"{value:.3g} {unit}".rstrip()

    def where(self, columns: Sequence[int]) -> str:
        """Return which columns are meant, if there are several."""
        if len(self.names) == 1:
            return ""
        shown = [self.names[column] for column in columns]
        return " in " + (shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1])


class Effect(NamedTuple):
    """A component: its term and hyper-parameters, its posterior mean [N, P] in target units, its share."""

    term: Term
    theta: np.ndarray
    scale: np.ndarray
    mean: np.ndarray
    share: float


def sentence_of(effect: Effect, columns: Columns) -> str:
    """Return what a component is; of several columns, the product of what it is along each."""
    groups = dict[tuple[int, ...], list[tuple[Base, np.ndarray]]]()
    for base, own in factors(effect.term, effect.theta):
        groups.setdefault(base.columns, []).append((base, own))
    phrases = [_phrase(group, effect, columns) for group in groups.values()]
    share = 100 * effect.share
    shown = f"{share:.0f}" if share >= 1 else f"{share:.1g}"
    return f"{' times '.join(phrases)}; {shown} % of the variance"


def _phrase(group: Sequence[tuple[Base, np.ndarray]], effect: Effect, columns: Columns) -> str:
    """Return what a component is along one column, or along some columns together."""
    own = {base.name: theta for base, theta in group}
    names, where = [base.name for base, _ in group], group[0][0].columns
    column, stationary = where[0], [name for name in names if name in STATIONARY]
    unit = effect.scale[column]
    if len(where) > 1:
        values = np.exp(own["rbf"]) * effect.scale[list(where)]
        lengths = [columns.amount(each, float(value)) for each, value in zip(where, values, strict=True)]
        return f"a smooth function of{columns.where(where)[3:]} together, over about {', '.join(lengths)}"
    length = float(np.exp(own[stationary[0]][0]) * unit) if stationary else 0.0
    if "periodic" in own:
        phrase = _period(float(np.exp(own["periodic"][0]) * unit), column, columns) + columns.where(where)
        phrase += f", whose shape changes over about {columns.amount(column, length)}" if stationary else ""
    elif stationary:
        phrase = _variation(stationary[0], length, column, columns)
    else:
        return _polynomial(names.count("linear") + names.count("growth"), effect, column, columns)
    return phrase + (f", {_size(effect, column, columns)}" if {"linear", "growth"} & set(names) else "")


def _period(period: float, column: int, columns: Columns) -> str:
    """Return a period by its name, if its unit is one of time, and its length."""
    days = DAYS.get(columns.units[column].removesuffix("s"), np.nan) * period
    for name, length in PERIODS.items():
        if abs(days / length - 1) < NEAR:
            return f"{'an' if name == 'hourly' else 'a'} {name} period ({columns.amount(column, period)})"
    return f"a period of {columns.amount(column, period)}"


def _variation(name: str, length: float, column: int, columns: Columns) -> str:
    """Return what a kernel of distances is: a trend, a variation, or wiggles."""
    amount, where = columns.amount(column, length), columns.where([column])
    if name == "matern12":
        return f"a rough path{where} that forgets where it was after about {amount}"
    smooth = {"rbf": "smooth", "rational_quadratic": "smooth", "matern52": "fairly smooth"}.get(name, "less smooth")
    share = length / max(float(np.ptp(columns.x[:, column])), 1e-300)
    where += ", on several scales," if name == "rational_quadratic" else ""
    if share >= TREND:
        return f"a {smooth} trend{where} over about {amount}"
    if share > WIGGLES:
        return f"a {smooth} variation{where} over about {amount}"
    return f"short-lived wiggles{where} about {amount} long"


def _polynomial(degree: int, effect: Effect, column: int, columns: Columns) -> str:
    """Return a line with its slope, or a parabola."""
    where = columns.where([column])
    if degree != 1 or len(effect.term) > 1 or effect.mean.shape[1] > 1:
        return {1: "a straight line", 2: "a parabola"}.get(degree, f"a polynomial of degree {degree}") + where
    slope = float(np.polyfit(columns.x[:, column], effect.mean[:, 0], 1)[0])
    unit = columns.units[column].removesuffix("s") if columns.units[column].removesuffix("s") in DAYS else ""
    per = f"per {unit or columns.units[column] or 'unit'}"
    return f"a straight line{where}, {'rising' if slope > 0 else 'falling'} by {abs(slope):.3g} {per}"


def _size(effect: Effect, column: int, columns: Columns) -> str:
    """Return how the size of a component changes along a column, from its posterior mean in thirds of the range."""
    values = columns.x[:, column]
    edges = values.min() + np.ptp(values) * np.array([1, 2]) / 3
    thirds = np.searchsorted(edges, values)
    sizes = [float(np.sqrt(np.mean(effect.mean[thirds == k] ** 2))) if np.any(thirds == k) else 0.0 for k in range(3)]
    first, middle, last = sizes
    if middle * GROWS < min(first, last):
        return f"growing to both sides of {columns.amount(column, float(values.mean()))}"
    if middle > GROWS * max(first, last):
        return f"largest around {columns.amount(column, float(values.mean()))}"
    if last > GROWS * first:
        return "growing"
    return "shrinking" if first > GROWS * last else "of changing size"
