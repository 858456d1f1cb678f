"""The compositional search: known compositions are found, and what it returns can be used."""

import re

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from kernel_zoo import matrix_at
from known_compositions import EIGHT, draw
from metaprior import kernels
from metaprior.baselines import ExactGPRegressor
from metaprior.kernels.composition.greedy_search import _starting_periods


@pytest.mark.parametrize("name", ["linear + periodic", "rbf"])
def test_a_known_composition_is_found_in_a_draw_without_noise(name):
    x, y = draw(EIGHT[name], 0, 80)
    assert kernels.search(x, y, depth=2, bases=("linear", "rbf", "periodic")).composition == name


@pytest.mark.slow
def test_at_least_seven_of_eight_known_compositions_are_found_in_draws_without_noise():
    found = {
        name: [kernels.search(*draw(terms, seed, 80), depth=2).composition for seed in range(2)]
        for name, terms in EIGHT.items()
    }
    assert sum(set(each) == {name} for name, each in found.items()) >= 7, found


def airline_like(count=96):
    """Years, and a line with a yearly period that grows, in units of their own."""
    x = 1950 + np.arange(count) / 12
    rng = np.random.default_rng(0)
    y = 100 + 30 * (x - 1950) + 8 * (x - 1950) * np.sin(2 * np.pi * x) + 3 * rng.standard_normal(count)
    return x[:, None], y


@pytest.fixture(scope="module")
def found():
    return kernels.search(*airline_like(), depth=2, bases=("linear", "rbf", "periodic"), units="years")


def test_a_line_and_a_growing_year_are_found_and_said_in_the_units_of_the_data(found):
    assert found.composition == "growth * periodic"  # on average over the year, growth is a line
    line, year = found.sentences
    assert line.startswith("a straight line, rising by ")
    assert float(line.split("rising by ")[1].split()[0]) == pytest.approx(30, rel=0.1)
    assert year.startswith("a yearly period (1 year), growing; ")
    assert found.noise[0] == pytest.approx(3, rel=0.3)


def test_the_kernel_in_data_units_has_the_evidence_that_the_search_says(found):
    x, y = airline_like()
    best = max(found.tried, key=lambda each: each.score).fitted
    noise, constant, scale = np.exp(best.theta[:3])
    assert found.noise[0] == pytest.approx(np.sqrt(noise) * y.std())
    centred, centre = (y - y.mean()) / y.std(), x - x.mean()
    inner = found.kernel.left if isinstance(found.kernel, kernels.Sum) else scale * found.kernel
    covariance = matrix_at(inner, centre, centre) + constant + noise * np.eye(len(y))
    slow = multivariate_normal(np.zeros(len(y)), covariance).logpdf(centred)
    assert found.log_evidence == pytest.approx(slow, rel=1e-6)


def test_the_kernel_can_be_given_to_a_gaussian_process(found):
    x, y = airline_like()
    gp = ExactGPRegressor(found.kernel, max_iter=0).fit(x, y)
    assert np.std(gp.predict(x) - y) < 5


def test_means_of_the_components_add_up_to_the_targets_but_for_a_constant_and_the_noise(found):
    x, y = airline_like()
    np.testing.assert_allclose(found.rows, x)
    rest = y - sum(component.mean[:, 0] for component in found.components)
    assert np.std(rest) < 4


def test_shares_are_those_of_the_variance_and_sum_to_it_with_the_noise(found):
    shares = [component.share for component in found.components]
    assert shares == sorted(shares, reverse=True)
    assert 0.9 < sum(shares) < 1.2  # components of a posterior are not quite uncorrelated


def test_the_frame_has_every_composition_once_and_the_best_first(found):
    pytest.importorskip("pandas")
    table = found.frame()
    assert table.composition[0] == found.composition
    assert table.composition.is_unique
    assert table.score.is_monotonic_decreasing
    assert len(table) == len(found.tried)
    assert {"nothing but noise", "linear", "rbf", "periodic"} <= set(table.composition)
    assert table.score[0] == pytest.approx(table.log_evidence[0] - 0.5 * np.log(96) * table.hypers[0])


def test_noise_alone_is_called_so():
    x = np.arange(60.0)
    found = kernels.search(x, np.random.default_rng(3).standard_normal(60), depth=2)
    assert found.sentences == ()
    assert "nothing but noise" in str(found)
    assert found.kernel == kernels.Constant(1.0)


def test_the_column_that_matters_is_found_by_its_name():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"age": rng.uniform(20, 80, 80), "height": rng.uniform(1.5, 2.0, 80)})
    y = 0.1 * table.age + 0.2 * rng.standard_normal(80)
    found = kernels.search(table, y, depth=1, bases=("linear", "rbf"), units=("year", "m"))
    assert found.composition == "linear(age)"
    assert found.sentences[0].startswith("a straight line in age, rising by 0.")
    assert " per year; " in found.sentences[0]
    assert isinstance(found.kernel, kernels.ActiveDims)


def test_more_rows_than_the_limit_are_drawn_at_random_and_this_is_told():
    x = np.random.default_rng(0).uniform(0, 10, 500)
    y = np.sin(2 * np.pi * x) + 0.1 * np.random.default_rng(1).standard_normal(500)
    found = kernels.search(x, y, depth=1, max_rows=60, units="hours")
    assert (len(found.rows), found.num_all_rows) == (60, 500)
    assert "60 of 500 rows" in str(found)
    assert found.composition == "periodic"
    assert re.match(r"an hourly period \((1 hour|0\.99\d hours|1\.00\d hours)\); ", found.sentences[0])


def test_periods_to_start_from_include_multiples_of_the_strongest():
    x = np.linspace(-1.7, 1.7, 100)
    found = np.exp(_starting_periods(x, np.sin(2 * np.pi * x / 0.3)[:, None]))
    for period in (0.3, 0.6, 0.9):
        assert np.abs(found / period - 1).min() < 0.02


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"bases": ("rbf", "cubic")}, r"bases: expected names among \['rbf'.*got \('rbf', 'cubic'\)"),
        ({"bases": "rbf"}, "bases: expected names"),
        ({"depth": 0}, "depth: expected a whole number of at least 1; got 0"),
        ({"beam": 1.5}, "beam: expected a whole number"),
        ({"units": ("day", "km")}, "units: expected 1 words, one per column"),
        ({"y": np.ones(3)}, "expected X .* got shapes"),
        ({"y": np.full(20, np.nan)}, "expected finite numbers in X and y"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_words(change, match):
    settings = {"X": np.arange(20.0), "y": np.ones(20), **change}
    with pytest.raises(ValueError, match=match):
        kernels.search(**settings)
