"""A function on a box and a surrogate that fits in a moment: what the tests of several loops need."""

import numpy as np

from metaprior import MetaGPRegressor
from metaprior.decisions import Box

BOX = Box([(-2.0, 1.0), (10.0, 30.0)])
#: Draws of expected improvement in the tests of small networks: one number, so that one program serves all.
FEW_DRAWS = 16


def tiny(**changes):
    """A surrogate that fits in a moment."""
    settings = {"n_inducing": 6, "max_iter": 60, "noise": 0.05, "random_state": 0, "input_kernel": "rbf"}
    return MetaGPRegressor((4,), **{"input_kernel": None, **settings, **changes})


def answered(x):
    """Return the value at a point."""
    return float((x[0] + 0.5) ** 2 + np.sin(x[1] / 3))
