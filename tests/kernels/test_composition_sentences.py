"""What the components of a composition are called."""

import numpy as np
import pytest

from metaprior.kernels.composition.bases import Base
from metaprior.kernels.composition.expression import assembled
from metaprior.kernels.composition.sentences import Columns, Effect, sentence_of

X = np.linspace(0, 100, 201)
FLAT = np.ones_like(X)


def said(*factors, mean=FLAT, unit="", share=0.31):
    """Return the sentence of a term over one column with a standard deviation of 10, from 0 to 100."""
    product = [(Base(name, (0,)), np.log(values)) for name, values in factors]
    composition, theta = assembled([(np.zeros(1), product)])
    effect = Effect(composition.terms[0], theta, np.array([10.0]), mean[:, None], share)
    return sentence_of(effect, Columns(("x0",), (unit,), X[:, None]))


LINE, SHORT = ("linear", []), ("rbf", [0.1])
WAVE = np.sin(X)


@pytest.mark.parametrize(
    ("factors", "settings", "sentence"),
    [
        ([("rbf", [5.0])], {"unit": "km"}, "a smooth trend over about 50 km"),
        ([("rbf", [1.5])], {}, "a smooth variation over about 15"),
        ([("rbf", [0.12])], {}, "short-lived wiggles about 1.2 long"),
        ([("matern12", [0.7])], {"unit": "day"}, "a rough path that forgets where it was after about 7 days"),
        ([("matern32", [1.5])], {}, "a less smooth variation over about 15"),
        ([("rational_quadratic", [1.5, 1.0])], {}, "a smooth variation, on several scales, over about 15"),
        ([("periodic", [0.7, 1.0])], {"unit": "days"}, "a weekly period (7 days)"),
        ([("periodic", [1.2, 1.0])], {"unit": "month"}, "a yearly period (12 months)"),
        ([("periodic", [0.1, 1.0])], {"unit": "year"}, "a yearly period (1 year)"),
        ([("periodic", [0.1, 1.0])], {"unit": "hour"}, "an hourly period (1 hour)"),
        ([("periodic", [0.75, 1.0])], {"unit": "day"}, "a period of 7.5 days"),
        ([("periodic", [0.75, 1.0])], {}, "a period of 7.5"),
        (
            [("periodic", [0.7, 1.0]), ("rbf", [3.0])],
            {"unit": "day"},
            "a weekly period (7 days), whose shape changes over about 30 days",
        ),
        ([("periodic", [0.7, 1.0]), ("growth", [1.0])], {"mean": X * WAVE}, "a period of 7, growing"),
        ([("periodic", [0.7, 1.0]), ("growth", [1.0])], {"mean": (120 - X) * WAVE}, "a period of 7, shrinking"),
        ([("periodic", [0.7, 1.0]), LINE], {"mean": (X - 50) * WAVE}, "a period of 7, growing to both sides of 50"),
        ([("rbf", [1.5]), LINE], {"mean": X}, "a smooth variation over about 15, growing"),
        ([LINE], {"mean": 3 * X, "unit": "days"}, "a straight line, rising by 3 per day"),
        ([LINE], {"mean": -0.25 * X}, "a straight line, falling by 0.25 per unit"),
        ([LINE, LINE], {"mean": (X - 50) ** 2}, "a parabola"),
    ],
)
def test_a_component_is_called_by_what_it_is(factors, settings, sentence):
    assert said(*factors, **settings) == f"{sentence}; 31 % of the variance"


def test_small_shares_are_not_rounded_away():
    assert said(("rbf", [5.0]), share=0.004).endswith("; 0.4 % of the variance")


def test_columns_are_named_where_there_are_several():
    columns = Columns(("day", "price", "size"), ("day", "", "m"), np.column_stack([X, X, X]))
    product = [(Base("periodic", (0,)), np.log([0.7, 1.0])), (Base("rbf", (1,)), np.log([5.0]))]
    for parts, sentence in (
        (product, "a weekly period (7 days) in day times a smooth trend in price over about 50"),
        ([(Base("rbf", (0, 1, 2)), np.log([1.0, 2.0, 3.0]))],
         "a smooth function of day, price and size together, over about 10 days, 20, 30 m"),
    ):  # fmt: skip
        composition, theta = assembled([(np.zeros(1), parts)])
        effect = Effect(composition.terms[0], theta, np.full(3, 10.0), FLAT[:, None], 0.5)
        assert sentence_of(effect, columns) == f"{sentence}; 50 % of the variance"
