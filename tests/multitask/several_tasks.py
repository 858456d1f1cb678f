"""Small data of several tasks, for the tests of their estimators."""

import numpy as np

from metaprior import kernels

RNG = np.random.default_rng(0)
SMALL = {"hidden_layer_sizes": (4,), "n_inducing": 6, "n_predict_draws": 4, "max_iter": 30, "adapt_iter": 20}
SMALL |= {"random_state": 0, "input_kernel": kernels.Periodic()}
TEST = RNG.uniform(-2, 2, (9, 1))


def wave(frequency, num_rows, offset=0.0, scale=1.0):
    x = RNG.uniform(-2, 2, (num_rows, 1))
    y = np.sin(2 * np.pi * frequency * x[:, 0]) + 0.1 * RNG.standard_normal(num_rows)
    return x, offset + scale * y


def classes(num_rows, labels, angle):
    x = RNG.standard_normal((num_rows, 2))
    side = x @ [np.cos(angle), np.sin(angle)]
    return x, np.array(labels)[np.digitize(side, np.linspace(-0.5, 0.5, len(labels) - 1))]


WAVES = {"slow": wave(0.4, 20), 2: wave(0.6, 15), "fast": wave(0.9, 23)}
NEW = wave(0.7, 12)
PLANES = [classes(30, ["low", "mid", "top"], 0.0), classes(25, ["low", "top"], 0.5)]
