"""
Several related tasks
=====================

Three waves of different frequencies share a network below its output layer. A fourth task has only eight rows. The
network that has seen the other tasks needs no training for it: ``adapt_iter=0`` solves one small linear system for the
task's own output layer. Fitted to the eight rows alone, the same network knows much less between them.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, plots
from metaprior.multitask import MultiTaskRegressor

rng = np.random.default_rng(0)


def wave(shift, n_rows):
    """Return rows of a wave with a shift of its own."""
    x = rng.uniform(-2, 2, (n_rows, 1))
    return x, np.sin(4 * x[:, 0] + shift) + 0.1 * rng.standard_normal(n_rows)


X, y = wave(0.8, 8)
shared = MultiTaskRegressor(input_kernel="rbf", adapt_iter=0, random_state=0)
shared.fit({f"shift {shift}": wave(shift, 100) for shift in (0.0, 1.5, 3.0)}).adapt("new", X, y)
models = {"after three other tasks": shared.estimator("new"), "from these rows alone": MetaGPRegressor(random_state=0)}
models["from these rows alone"].set_params(input_kernel="rbf").fit(X, y)

grid = np.linspace(-2, 2, 200)
with plots.style():
    figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, sharey=True)
for panel, (name, model) in zip(axes, models.items(), strict=True):
    panel.plot(grid, np.sin(4 * grid + 0.8), "k--", lw=1, label="truth")
    model.predict_distribution(grid[:, None]).plot(n_draws=0, ax=panel)
    panel.plot(X, y, "ko", ms=4, label="data")
    panel.set_title(name)
axes[0].set_xlabel("")
axes[1].get_legend().remove()
plt.show()
