"""Mixtures of Gaussians: every answer against brute force, for few and many components, near and far apart."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from metaprior.predictive import gaussian_mixture
from metaprior.predictive.gaussian_mixture import Gaussians

#: Components, the spread of their means in their own deviations: pairs and grids, grids and nodes of every component.
CASES = [(1, 0.0), (2, 0.3), (2, 30.0), (16, 1.0), (16, 300.0), (40, 0.5), (40, 20.0)]
each_case = pytest.mark.parametrize(("count", "spread"), CASES)


def _part(count: int, spread: float, num_rows: int = 3) -> Gaussians:
    rng = np.random.default_rng(count)
    std = rng.uniform(0.2, 0.4, (count, num_rows, 1))
    return Gaussians(slice(0, num_rows), 0.3 * spread * rng.standard_normal(std.shape), std)


def _row(part: Gaussians, row: int) -> tuple[np.ndarray, np.ndarray]:
    return part.mean[:, row, 0], part.std[:, row, 0]


@each_case
@pytest.mark.parametrize("level", [1e-8, 0.03, 0.5, 0.999])
def test_quantile_is_a_root_of_the_distribution_function(count, spread, level):
    """Between components far apart there are many."""
    part = _part(count, spread)
    found = gaussian_mixture.quantile(part, level)
    np.testing.assert_allclose(np.mean(special.ndtr((found - part.mean) / part.std), axis=0), level, rtol=1e-9)


@each_case
def test_crps_is_the_closed_form_over_all_pairs(count, spread):
    part, y = _part(count, spread), np.array([[0.1], [-2.0], [5.0]])
    found = gaussian_mixture.crps(part, y)
    for row in range(3):
        mean, std = _row(part, row)
        folded = lambda m, s: stats.foldnorm(np.abs(m) / s, scale=s).mean()  # noqa: E731
        gaps = folded(mean[:, None] - mean, np.hypot(std[:, None], std))
        assert found[row, 0] == pytest.approx(np.mean(folded(mean - y[row], std)) - 0.5 * np.mean(gaps), rel=1e-7)


@each_case
def test_entropy_is_the_integral(count, spread):
    part = _part(count, spread)
    found = gaussian_mixture.entropy(part)
    for row in range(3):
        mean, std = _row(part, row)
        grid = np.linspace(mean.min() - 9 * std.max(), mean.max() + 9 * std.max(), 400_001)
        density = np.zeros_like(grid)
        for m, s in zip(mean, std, strict=True):
            density += stats.norm(m, s).pdf(grid) / count
        expected = integrate.simpson(special.entr(density), x=grid)
        assert found[row] == pytest.approx(expected, abs=1e-3)  # what `Predictive.entropy` promises
