"""The data set of the examples: as it is defined, and the same for ever."""

import numpy as np
import pytest

from metaprior import datasets


@pytest.mark.parametrize("frequency", [0.6, 1.1])
def test_sinusoid_has_its_frequency_its_noise_and_its_ranges(frequency):
    parts = datasets.sinusoid(0, num_train=4000, frequency=frequency)
    noise = parts["train"].y - np.sin(2 * np.pi * frequency * parts["train"].X[:, 0])
    assert abs(noise.std() / 0.1 - 1) < 4 / np.sqrt(2 * 4000)
    assert abs(parts["train"].X).max() < 2 < abs(parts["outside"].X).min() < abs(parts["outside"].X).max() < 4
    assert len(parts["inside"].X) == len(parts["outside"].X) == 500


def test_the_sinusoid_of_the_results_stays_as_it_is():
    train = datasets.sinusoid(0)["train"]
    np.testing.assert_allclose([train.X[0, 0], train.y[0]], [0.5478467492858172, 0.7460664600575659], rtol=1e-12)
