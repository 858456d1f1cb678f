"""Compositions with known hyper-parameters, and noise-free functions drawn from their priors."""

import numpy as np

from metaprior.kernels.composition.bases import Base, Rows
from metaprior.kernels.composition.expression import assembled

RBF = (Base("rbf", (0,)), np.log([0.5]))
LONG_RBF = (Base("rbf", (0,)), np.log([1.2]))
LINEAR = (Base("linear", (0,)), np.zeros(0))
PERIODIC = (Base("periodic", (0,)), np.log([0.6, 0.8]))

#: The factors of every term, in standard deviations of the inputs.
EIGHT = {
    "linear": [[LINEAR]],
    "rbf": [[RBF]],
    "periodic": [[PERIODIC]],
    "linear + periodic": [[LINEAR], [PERIODIC]],
    "periodic + rbf": [[PERIODIC], [RBF]],
    "linear + rbf": [[LINEAR], [RBF]],
    "linear * periodic": [[LINEAR, PERIODIC]],
    "periodic * rbf": [[PERIODIC, LONG_RBF]],
}


def draw(terms, seed, num_rows=200):
    """Return inputs about 0 and a function of the sum of these products, without noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.8, 1.8, num_rows)
    x -= x.mean()
    composition, theta = assembled([(np.zeros(1), term) for term in terms])
    sizes, directions = np.linalg.eigh(composition.evaluated(Rows(x[:, None]), theta)[0])
    return x, directions @ (np.sqrt(np.maximum(sizes, 0)) * rng.standard_normal(num_rows))
