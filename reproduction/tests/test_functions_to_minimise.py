"""Functions whose lowest value is known: that value, and how near Bayesian optimisation comes to it."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from metaprior.decisions import Box, default_surrogate, minimise
from metaprior.kernels import Periodic
from metaprior_reproduction.problems import BRANIN, HARTMANN6, RIPPLES
from metaprior_reproduction.problems.functions import PERIOD

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")

SEEDS = range(100, 105)


@pytest.mark.parametrize("objective", [BRANIN, HARTMANN6, RIPPLES])
def test_the_lowest_values_are_those_that_a_local_search_finds(objective):
    box = Box(objective.bounds)
    starts = box.spread(64, 0)
    best = sorted(starts, key=objective)[:8]
    found = [scipy_minimize(objective, x, bounds=objective.bounds, tol=1e-12).fun for x in best]
    np.testing.assert_allclose(min(found), objective.lowest, atol=1e-6)
    assert all(objective(x) >= objective.lowest for x in starts)


def regrets(objective, num_evaluations, seeds=SEEDS, **settings):
    """The simple regret of a run for every seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = [minimise(objective, objective.bounds, num_evaluations, random_state=seed, **settings) for seed in seeds]
    return np.array([run.best_y - objective.lowest for run in runs])


@pytest.mark.slow
def test_branin_is_minimised_to_a_hundredth_in_forty_evaluations_in_the_median_run():
    assert np.median(regrets(BRANIN, 40)) <= 0.01


def pays(other, ours):
    """Whether the mean log ratio of regrets, seed by seed, is two standard errors above zero.

    Regrets of one method differ by orders of magnitude: the plain mean is that of the worst seed.
    """
    gain = np.log(other) - np.log(ours)
    return gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))


@pytest.mark.slow
def test_hartmann_6_is_brought_lower_than_random_points_bring_it():
    assert pays(regrets(HARTMANN6, 50, acquisition="random"), regrets(HARTMANN6, 50))


@pytest.mark.slow
def test_knowing_the_period_pays_on_a_periodic_function():
    periodic, seeds = default_surrogate(Periodic(PERIOD, fixed=("period",))), range(300, 310)
    assert pays(regrets(RIPPLES, 30, seeds), regrets(RIPPLES, 30, seeds, estimator=periodic))
