"""Values that hypothesis chooses, for what holds for all values."""

import operator
from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from metaprior.kernels import RBF, Constant, Kernel, Linear, Matern12, Matern32, Matern52, Periodic, RationalQuadratic

EPS = np.finfo(np.float64).eps
#: The same bits, but where a value is below the smallest normal number: XLA rounds it to zero.
TINY = np.finfo(np.float64).tiny
#: One thing is compiled or computed a test, so that an example takes milliseconds; nothing is kept between runs.
few = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


#: A function and its arguments, which may be recipes: hypothesis chooses them, the test makes the thing.
Recipe = tuple
Recipes = st.SearchStrategy[Recipe]


def recipe(function: Callable, *arguments: st.SearchStrategy) -> Recipes:
    return st.tuples(st.just(function), *arguments)


def made(thing: object) -> object:
    """What a recipe makes; anything else is itself."""
    if isinstance(thing, tuple) and thing and callable(thing[0]):
        return thing[0](*map(made, thing[1:]))
    return thing


def numbers(low: float, high: float, shape: int | tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, shape, elements=st.floats(low, high, allow_subnormal=False))


POSITIVE = st.floats(0.05, 20.0)


def bases(value: st.SearchStrategy) -> Recipes:
    """Every kernel, with hyper-parameters of its own."""
    return st.one_of(
        *[recipe(family, value) for family in (RBF, Matern12, Matern32, Matern52, Linear)],
        recipe(RationalQuadratic, value, POSITIVE),
        recipe(Periodic, value, value),
        recipe(Constant, POSITIVE),
    )


def composed(base: Recipes) -> Recipes:
    """Sums, products and scalings of kernels."""
    return st.recursive(
        base,
        lambda inner: st.one_of(
            recipe(operator.add, inner, inner),
            recipe(operator.mul, inner, inner),
            recipe(operator.mul, inner, POSITIVE),
        ),
        max_leaves=3,
    )


def on_one_column(base: Recipes) -> Recipes:
    return recipe(Kernel.on, base, st.integers(0, 1))
