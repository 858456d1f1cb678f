"""The period that a `Periodic` kernel starts from when the user gives none."""

import numpy as np
import pytest

from metaprior.periods import periods_of, starting_periods

SEEDS = range(5)


def wave(x: np.ndarray, period: float, seed: int, noise: float = 0.1) -> np.ndarray:
    """Return a sinusoid of this period with a random phase and noise, as one column."""
    rng = np.random.default_rng([seed, 1])
    return np.sin(2 * np.pi * x / period + rng.uniform(0, 2 * np.pi))[:, None] + noise * rng.standard_normal(
        (len(x), 1)
    )


def irregular(seed: int, count: int = 100, spread: float = 4.0) -> np.ndarray:
    return spread * np.random.default_rng(seed).uniform(-0.5, 0.5, count)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("period", [2.0, 1 / 0.6, 0.5, 0.2])
def test_period_of_a_sinusoid_at_irregular_places_is_found_within_two_percent(period, seed):
    x = irregular(seed)
    np.testing.assert_allclose(starting_periods(x[:, None], wave(x, period, seed)), [period], rtol=0.02)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_linear_trend_does_not_matter(seed):
    x = irregular(seed)
    y = wave(x, 0.5, seed)
    plain = starting_periods(x[:, None], y)
    # constant and slope are fitted beside the wave, so the peak is the same to the rounding of its interpolation
    np.testing.assert_allclose(starting_periods(x[:, None], y + 30 * x[:, None] - 7), plain, rtol=1e-6)
    np.testing.assert_allclose(plain, [0.5], rtol=0.02)


@pytest.mark.parametrize("seed", SEEDS)
def test_period_is_found_in_the_column_that_has_it(seed):
    x = np.column_stack([irregular(seed + 10), irregular(seed, spread=40.0), irregular(seed + 20)])
    found = starting_periods(x, wave(x[:, 1], 5.0, seed))
    assert found.shape == (3,)
    np.testing.assert_allclose(found[1], 5.0, rtol=0.02)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_period_scales_with_the_unit_of_x_and_not_with_that_of_y(unit):
    x = irregular(0)
    y = wave(x, 0.5, 0)
    np.testing.assert_allclose(
        starting_periods(unit * x[:, None] + unit, 1e3 * y), unit * starting_periods(x[:, None], y), rtol=1e-6
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_targets_speak_together(seed):
    x = irregular(seed)
    noise = np.random.default_rng(seed).standard_normal((len(x), 1))
    y = np.column_stack([0.3 * noise, 2 * wave(x, 0.5, seed)])
    np.testing.assert_allclose(starting_periods(x[:, None], y), [0.5], rtol=0.02)


def test_many_rows_are_thinned_and_still_tell():
    x = np.sort(irregular(0, count=20_000))
    np.testing.assert_allclose(starting_periods(x[:, None], wave(x, 0.5, 0)), [0.5], rtol=0.02)


def test_rows_on_a_grid_tell_as_well():
    x = np.arange(0.0, 60.0)
    np.testing.assert_allclose(starting_periods(x[:, None], wave(x, 12.0, 0)), [12.0], rtol=0.02)


def test_a_constant_column_gets_a_positive_period_and_does_not_disturb_the_others():
    x = irregular(0)
    found = starting_periods(np.column_stack([np.full_like(x, 3.0), x]), wave(x, 0.5, 0))
    assert found[0] > 0
    np.testing.assert_allclose(found[1], 0.5, rtol=0.02)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_few_rows_give_a_positive_finite_period(count):
    x = irregular(0, count)
    found = starting_periods(x[:, None], wave(x, 0.5, 0))
    assert np.isfinite(found).all()
    assert (found > 0).all()


def test_a_constant_target_gives_a_positive_finite_period():
    found = starting_periods(irregular(0)[:, None], np.ones((100, 1)))
    assert np.isfinite(found).all()
    assert (found > 0).all()


def test_repeated_rows_do_not_matter():
    x = irregular(0)
    y = wave(x, 0.5, 0)
    twice = starting_periods(np.tile(x[:, None], (2, 1)), np.tile(y, (2, 1)))
    np.testing.assert_allclose(twice, starting_periods(x[:, None], y), rtol=1e-6)


TRENDS = {
    "flat": lambda t: 0 * t,
    "quadratic": lambda t: 100 * t**2,
    "exponential": lambda t: np.exp(6 * t),
    "falling and rising": lambda t: 50 * np.cos(4 * t),
}


@pytest.mark.parametrize("trend", TRENDS.values(), ids=TRENDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_curved_trend_is_no_period(trend, seed):
    x = np.arange(400.0)
    y = wave(x, 17.3, seed, noise=0.3) + trend(x / 400)[:, None]
    np.testing.assert_allclose(starting_periods(x[:, None], y), [17.3], rtol=0.01)


@pytest.mark.parametrize("trend", TRENDS.values(), ids=TRENDS)
@pytest.mark.parametrize("width", [1.5, 4.0, 11.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_period_of_a_train_of_pulses_is_neither_a_half_nor_a_multiple(seed, width, trend):
    x, rng = np.arange(400.0), np.random.default_rng(seed)
    y = 3.0 * (x % 23 < width) + trend(x / 400) + 0.2 * rng.standard_normal(400)
    np.testing.assert_allclose(starting_periods(x[:, None], y[:, None]), [23.0], rtol=0.01)


@pytest.mark.parametrize("seed", SEEDS)
def test_gaps_and_missing_rows_do_not_hide_a_period(seed):
    rng = np.random.default_rng(seed)
    x = np.arange(400.0)
    y = wave(x, 17.3, seed, noise=0.3) + 100 * (x[:, None] / 400) ** 2
    for keep in ((x < 100) | (x > 250), rng.uniform(size=400) < 0.3):
        np.testing.assert_allclose(starting_periods(x[keep, None], y[keep]), [17.3], rtol=0.01)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_week_is_found_in_days_on_which_something_happens(seed):
    x, rng = np.arange(730.0), np.random.default_rng(seed)
    y = 10 + 0.02 * x + 2 * np.isin(x % 7, [5, 6]) + 0.5 * rng.standard_normal(730)
    np.testing.assert_allclose(starting_periods(x[:, None], y[:, None]), [7.0], rtol=0.01)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_periods_are_both_found(seed):
    x = np.arange(0.0, 60.0, 1 / 12)
    y = wave(x, 1.0, seed) + 0.5 * wave(x, 6.9, seed + 1)
    found = periods_of(x, y).period[:2]
    np.testing.assert_allclose(found, [1.0, 6.9], rtol=0.01)


def test_a_slow_wander_does_not_turn_a_period_into_its_multiple():
    x, rng = np.arange(0.0, 120.0, 0.05), np.random.default_rng(0)
    wander = np.zeros(len(x))
    for step in range(1, len(x)):
        wander[step] = 0.99 * wander[step - 1] + 0.14 * rng.standard_normal()
    y = np.sin(2 * np.pi * x) + 0.5 * np.sin(4 * np.pi * x + 1) + wander
    np.testing.assert_allclose(starting_periods(x[:, None], y[:, None]), [1.0], rtol=0.01)


def test_fewer_than_three_turns_count_where_nothing_else_stands_out():
    x = irregular(0)
    found = periods_of(x, wave(x, 4 / 2.4, 0))
    np.testing.assert_allclose(found.period[0], 4 / 2.4, rtol=0.02)
    assert found.gain[0] > 100
