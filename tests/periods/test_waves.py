"""The pieces of the search for periods against slow twins: direct sums, least squares, a dense Gaussian process."""

import numpy as np
import pytest

from metaprior.periods.evidence import LENGTHSCALES, RATIOS
from metaprior.periods.transforms import OVERSAMPLING, explained_by_waves, transforms
from metaprior.periods.waves import Waves, line, slow_trend

RNG = np.random.default_rng(0)
TURNS = np.sort(np.concatenate([[0.0, 1.0], RNG.uniform(0, 1, 58)]))
ONES = np.ones(len(TURNS))
Y = np.column_stack([np.sin(2 * np.pi * 7.3 * TURNS), TURNS**2]) + 0.3 * RNG.standard_normal((60, 2))
HIGHEST = 20.0


def waves_at(frequencies):
    angle = 2 * np.pi * np.outer(TURNS, frequencies)
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)


def squares_left(*columns):
    """Return the sum of squares that least squares of these columns leaves, for every target."""
    design = np.concatenate(columns, axis=1)
    return np.sum((Y - design @ np.linalg.lstsq(design, Y, rcond=None)[0]) ** 2, axis=0)


def test_transforms_are_the_direct_sums_up_to_the_aliases_of_the_grid():
    found = transforms(TURNS, Y, HIGHEST)
    frequencies = np.arange(len(found)) / OVERSAMPLING
    assert frequencies[-1] == 2 * HIGHEST
    slow = np.exp(-2j * np.pi * np.outer(frequencies, TURNS)) @ Y
    cells = 512  # the power of two from 16 x 20 on
    # the sinc^2 of an alias, relative to that of the frequency itself: (f / (f - m cells))^2 for all m but 0
    aliases = sum((frequencies / (frequencies - m * cells)) ** 2 for m in range(-50, 51) if m)
    assert np.all(np.abs(found - slow) <= aliases[:, None] * np.sum(np.abs(Y), axis=0) + 1e-9)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("trend", [line, slow_trend])
def test_explained_squares_are_those_of_least_squares_at_every_frequency(trend, count):
    basis = trend(TURNS, ONES)
    rest = Y - basis @ (basis.T @ Y)
    sums = transforms(TURNS, np.column_stack([np.ones(60), basis, rest]), HIGHEST)
    numbers = np.arange(3 * OVERSAMPLING, int(HIGHEST * OVERSAMPLING) // count)
    found = explained_by_waves(sums, numbers, count, basis.shape[1])
    k = np.arange(1, count + 1)
    slow = [np.sum(rest**2, axis=0) - squares_left(basis, waves_at(number / OVERSAMPLING * k)) for number in numbers]
    # the aliases are 2 % of the sums at most
    np.testing.assert_allclose(found, slow, atol=0.05 * np.sum(rest**2, axis=0).max())


@pytest.mark.parametrize("frequencies", [[7.3], [3.1, 6.2, 9.3], [4.0, 11.7]])
def test_gain_is_that_of_least_squares_less_a_price_per_wave(frequencies):
    basis = slow_trend(TURNS, ONES)
    own = squares_left(basis, waves_at(frequencies))
    slow = 30 * np.sum(np.log(squares_left(basis) / own)) - len(frequencies) * np.log(60)
    np.testing.assert_allclose(Waves(TURNS, Y, basis, ONES).gain(np.array(frequencies)), slow, rtol=1e-5)


def test_grid_prefers_the_number_of_waves_with_the_highest_gain():
    waves = Waves(TURNS, Y, line(TURNS, ONES), ONES)
    numbers = np.array([40, 58, 90])
    gains, counts = waves.gains(numbers, HIGHEST)
    for number, gain, count in zip(numbers, gains, counts, strict=True):
        slow = {k: waves.gain(number / OVERSAMPLING * np.arange(1, k + 1)) for k in (1, 2, 3, 5)}
        allowed = {k: value for k, value in slow.items() if number * k <= HIGHEST * OVERSAMPLING or k == 1}
        assert count in allowed
        assert gain == pytest.approx(max(allowed.values()), abs=1.0)


def test_evidence_is_that_of_a_dense_gaussian_process_beside_the_trend():
    basis = line(TURNS, ONES)
    others = np.linalg.svd(basis, full_matrices=True)[0][:, 2:]  # what is orthogonal to the trend
    frequency, rest = 3.7, others.T @ Y
    angle = np.pi * frequency * (TURNS[:, None] - TURNS)
    best = -np.inf
    for length in LENGTHSCALES:
        k = others.T @ np.exp(-2 * np.sin(angle) ** 2 / length**2) @ others
        for ratio in RATIOS / 58:
            c = np.eye(58) + ratio * k  # the noise, at its best, is what is left per row
            left = np.sum(rest * np.linalg.solve(c, rest), axis=0) / np.sum(rest**2, axis=0)
            best = max(best, -np.linalg.slogdet(c)[1] - 29 * np.sum(np.log(np.maximum(left, 1e-9))))
    found = Waves(TURNS, Y, basis, ONES).evidence(frequency, np.arange(1, 61))
    assert found == pytest.approx(best, rel=1e-4)


def test_evidence_prefers_a_period_to_its_half_its_double_and_its_third():
    rng = np.random.default_rng(1)
    turns = np.linspace(0, 1, 300)
    y = 1.0 * ((turns * 12) % 1 < 0.3) + 0.2 * rng.standard_normal(300)
    waves = Waves(turns, y[:, None] - y.mean(), slow_trend(turns, np.ones(len(turns))), np.ones(len(turns)))
    found = {times: waves.evidence(12 * times, np.arange(1, int(72 / times))) for times in (1 / 3, 0.5, 1, 2, 3)}
    assert max(found, key=found.get) == 1
    assert found[1] > found[0.5] + 10 > found[2] + 10


def test_refinement_finds_the_top_of_a_peak_between_the_frequencies_of_the_grid():
    waves = Waves(TURNS, Y, line(TURNS, ONES), ONES)
    fine = np.linspace(7.25 - 1 / OVERSAMPLING, 7.25 + 1 / OVERSAMPLING, 2001)
    best = fine[np.argmax([waves.gain(np.array([frequency])) for frequency in fine])]
    assert waves.refined(7.25, 1) == pytest.approx(best, abs=2e-4)


def test_the_slow_trend_takes_up_what_turns_less_than_three_times_and_leaves_what_turns_more():
    turns = np.linspace(0, 1, 400)
    basis = slow_trend(turns, np.ones(len(turns)))
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-10)

    def left(values):
        values = values - values.mean()
        return np.sum((values - basis @ (basis.T @ values)) ** 2) / np.sum(values**2)

    for slow in (turns**3, np.exp(6 * turns), np.cos(4 * turns), np.sin(2 * np.pi * 2.2 * turns)):
        assert left(slow) < 1e-2
    assert left(np.exp(6 * turns)) < 1e-8
    for turning in (4.0, 5.0, 9.0):
        assert np.mean([left(np.sin(2 * np.pi * turning * turns + phase)) for phase in (0, 1, 2)]) > 0.4


def test_a_row_that_counts_three_times_is_three_rows():
    weight = np.random.default_rng(3).integers(1, 4, len(TURNS))
    root, often = np.sqrt(weight), np.repeat(np.arange(len(TURNS)), weight)
    ones, k = np.ones(len(often)), np.arange(1, 4)
    counted = Waves(TURNS, Y, line(TURNS, root), root)
    repeated = Waves(TURNS[often], Y[often], line(TURNS[often], ones), ones)
    numbers = np.arange(24, 80)
    np.testing.assert_allclose(counted.gains(numbers, 10.0)[0], repeated.gains(numbers, 10.0)[0], rtol=1e-6)
    assert counted.gain(2.5 * k) == pytest.approx(repeated.gain(2.5 * k), rel=1e-8)
    assert counted.evidence(2.5, k) == pytest.approx(repeated.evidence(2.5, k), rel=1e-8)
