"""Models with an integrated output layer that nobody has trained, and what they predict."""

from typing import NamedTuple

import numpy as np

from metaprior.inference import Batch
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.output_layer import Exact
from metaprior.predictive.integrated import IntegratedDraws
from metaprior.predictive.mixture import GaussianMixturePredictive, predictive_of
from written import integrated_metagp

SIZES, KEY, NUM_BELOW = (2, 3, 2), np.array([3, 0], np.uint32), 3
RNG = np.random.default_rng(0)
X, Y, X_NEW = RNG.uniform(-2, 2, (6, 2)), RNG.standard_normal((6, 2)), RNG.uniform(-3, 3, (7, 2))
NOISE, OFFSET, SCALE = np.array([0.2, 0.3]), np.array([1.0, -2.0]), np.array([2.0, 0.5])


class Built(NamedTuple):
    """A model, and its posterior at any rows."""

    model: Model

    def draws(self, x: np.ndarray) -> IntegratedDraws:
        return IntegratedDraws(self.model, KEY, NUM_BELOW, KEY, 16, x)

    def at(self, x: np.ndarray) -> GaussianMixturePredictive:
        return predictive_of(self.draws(x), OFFSET, SCALE, flat=False)


def built(**options) -> Built:
    """With two targets; options are those of the weight model."""
    output = Exact().with_rows(Batch(X, Y, np.ones(len(X))))
    return Built(Model(integrated_metagp(SIZES, **options), Dense(SIZES), Gaussian(np.log(NOISE)), output))
