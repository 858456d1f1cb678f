"""Steps of a period: small where the data have many turns, so that a period that was found is not lost."""

import jax
import numpy as np
import pytest

from metaprior import MetaGPRegressor
from metaprior.kernels import RBF, Linear, Periodic
from metaprior.kernels.chosen_sum import ChosenSum
from metaprior.kernels.periodic import STEP


@pytest.mark.parametrize(("period", "factor"), [(0.02, STEP * 0.02), (1.0, STEP), (50.0, 1.0)])
def test_the_step_of_a_period_is_in_proportion_to_it_and_never_longer_than_others(period, factor):
    factors = Periodic(period).bound_to(1).step_factors()
    np.testing.assert_allclose(factors.leaf("period"), [factor], rtol=1e-6)
    np.testing.assert_array_equal(factors.leaf("lengthscale"), 1.0)


def test_the_factors_of_a_kernel_have_its_shape():
    composed = (Linear() + 2.0 * Periodic(0.5) * RBF().on(0)).bound_to(1)
    for kernel in (composed, ChosenSum.of([composed, RBF()], [0])):
        assert jax.tree.structure(kernel.step_factors()) == jax.tree.structure(kernel)
    assert all(np.all(np.asarray(leaf) == 1) for leaf in jax.tree.leaves(RBF([1.0, 2.0]).step_factors()))


def test_a_period_with_a_hundred_turns_stays_where_the_spectrum_found_it():
    """Before, the first steps moved it by tenths, and the wave was lost: the noise ended at 0.7 instead of 0.1."""
    day = np.sort(np.random.default_rng(0).uniform(0, 700, 160))
    y = np.sin(2 * np.pi * day / 7) + 0.1 * np.random.default_rng(1).standard_normal(160)
    model = MetaGPRegressor((3,), input_kernel=Periodic(), max_iter=80, random_state=0).fit(day[:, None], y)
    assert model.input_kernel_.period == pytest.approx(7, rel=1e-3)
    inside = np.linspace(5, 695, 50)
    assert np.sqrt(np.mean((model.predict(inside[:, None]) - np.sin(2 * np.pi * inside / 7)) ** 2)) < 0.2
